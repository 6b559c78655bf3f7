// What a node records of itself with librose-rr, so that `rose replay --recording` runs it again alone: each input as
// the loop takes it up, the chances of raft's elections, and for comparison the state after each step. Without ROSE_RR
// nothing is called.
package main

// #cgo pkg-config: rose-rr
// #include <stdint.h>
// #include <rose_rr.h>
// static int on(void) { return rose_rr_on(); }
// static int replaying(void) { return rose_rr_replaying(); }
// static size_t next(const char *key) { return rose_rr_lock(key); }
// static void record(const char *key, uintptr_t data, size_t size) { rose_rr_record_sized(key, (void *)data, size,
// size); } static void compare(const char *key, void *data, size_t size) { rose_rr_compare(key, data, size); }
import "C"

import (
	"crypto/rand"
	"io"
	"runtime"
	"unsafe"
)

var recording, replaying = C.on() != 0, C.replaying() != 0
var inputKey, chanceKey, stateKey = C.CString("input"), C.CString("chance"), C.CString("state")

func begin() {
	if replaying {
		runtime.LockOSThread() // the replay has ended when the thread of the last record returns
	}
	if recording {
		rand.Reader = chances{rand.Reader} // where raft takes its election timeouts from
	}
}

// Returns the bytes unchanged; while replaying, the recorded ones.
func recorded(key *C.char, data []byte) []byte {
	if replaying {
		data = make([]byte, C.next(key))
	}
	// As a number: for a pointer, cgo would check at each call whether it leads to other pointers.
	C.record(key, C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(data)))), C.size_t(len(data)))
	runtime.KeepAlive(data)
	return data
}

var scratch []byte // a single buffer suffices, because one loop takes all inputs

// The next input. While replaying it comes from the recording, and no connection delivers any.
func take(inputs <-chan input) input {
	if replaying {
		return decoded(recorded(inputKey, nil))
	}
	taken := <-inputs
	if recording {
		scratch = taken.encoded(scratch[:0])
		recorded(inputKey, scratch)
	}
	return taken
}

var history, steps uint64

// One comparison covers sixteen steps: the hash contains all states until then.
func compareState(state ...uint64) {
	if recording {
		for _, part := range state {
			history = (history ^ part) * 1099511628211 // FNV-1a, by words
		}
		if steps++; steps%16 == 0 {
			C.compare(stateKey, unsafe.Pointer(&history), 8)
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
