// What a node records of itself with librose-rr, so that `rose replay --recording` runs it again alone: each input as the loop takes it
// up, the chances of raft's elections, and for comparison the state after each step. Without ROSE_RR nothing is called.
package main

// #cgo pkg-config: rose-rr
// #include <rose_rr.h>
// static int on(void) { return rose_rr_on(); }
// static int replaying(void) { return rose_rr_replaying(); }
// static size_t next(const char *key) { return rose_rr_lock(key); }
// static void record(const char *key, void *data, size_t size) { rose_rr_record_sized(key, data, size, size); }
// static void compare(const char *key, void *data, size_t size) { rose_rr_compare(key, data, size); }
import "C"

import (
	"crypto/rand"
	"hash/fnv"
	"io"
	"runtime"
	"unsafe"
)

var recording, replaying = C.on() != 0, C.replaying() != 0
var inputKey, chanceKey, stateKey = C.CString("input"), C.CString("chance"), C.CString("state")

func begin() {
	if replaying {
		runtime.LockOSThread() // the last record's thread coming back says that all is done
	}
	if recording {
		rand.Reader = chances{rand.Reader} // where raft takes its election timeouts from
	}
}

// The bytes as they are; while replaying, those that were recorded.
func recorded(key *C.char, data []byte) []byte {
	if replaying {
		data = make([]byte, C.next(key))
	}
	C.record(key, unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)))
	return data
}

// The next input. While replaying it comes from the recording, and nobody sends any.
func take(inputs <-chan input) input {
	if !recording {
		return <-inputs
	}
	var taken input
	if !replaying {
		taken = <-inputs
	}
	return decoded(recorded(inputKey, taken.encoded()))
}

var history = fnv.New64a()
var steps int

// One comparison stands for sixteen steps: it is of all states until then.
func compareState(state []byte) {
	if recording {
		history.Write(state)
		if steps++; steps%16 == 0 {
			sum := history.Sum(nil)
			C.compare(stateKey, unsafe.Pointer(unsafe.SliceData(sum)), C.size_t(len(sum)))
		}
	}
}

type chances struct{ source io.Reader }

func (from chances) Read(to []byte) (int, error) {
	if !replaying {
		if _, err := io.ReadFull(from.source, to); err != nil {
			return 0, err
		}
	}
	return copy(to, recorded(chanceKey, to)), nil
}
