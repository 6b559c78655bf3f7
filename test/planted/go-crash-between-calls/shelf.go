// The shelf of ../crash-between-writes (see there) in Go: the same requests, files and bug. System calls are made by
// the runtime's own assembly, and each request is served by a goroutine that moves between threads.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

const boxes = 4096

type shelf struct {
	mu                    sync.Mutex
	values                [boxes]uint32
	generation            uint64
	index, store, journal *os.File
}

func open(path string, flags int) *os.File {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|flags, 0644)
	if err != nil {
		panic(err)
	}
	return f
}

func (s *shelf) recover() {
	s.generation = 1
	s.index = open("index", 0)
	s.store = open("boxes", 0)
	s.journal = open("journal", os.O_APPEND)
	var head [16]byte
	if n, _ := s.index.ReadAt(head[:], 0); n == 16 {
		s.generation = binary.LittleEndian.Uint64(head[:])
	}
	raw := make([]byte, boxes*4)
	if n, _ := s.store.ReadAt(raw, 0); n == len(raw) {
		for i := range s.values {
			s.values[i] = binary.LittleEndian.Uint32(raw[i*4:])
		}
	}
	data, _ := io.ReadAll(io.NewSectionReader(s.journal, 0, 1<<30))
	for ; len(data) >= 16; data = data[16:] {
		if binary.LittleEndian.Uint64(data) >= s.generation {
			s.values[binary.LittleEndian.Uint32(data[8:])] = binary.LittleEndian.Uint32(data[12:])
		}
	}
}

func (s *shelf) put(box, value uint32) bool {
	var r [16]byte
	binary.LittleEndian.PutUint64(r[:], s.generation)
	binary.LittleEndian.PutUint32(r[8:], box)
	binary.LittleEndian.PutUint32(r[12:], value)
	if _, err := s.journal.Write(r[:]); err != nil {
		return false
	}
	s.values[box] = value
	return true
}

// The bug: the index is written first. From then on the journal is invalid, but the boxes are not written yet.
func (s *shelf) checkpoint() bool {
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:], s.generation+1)
	if _, err := s.index.WriteAt(head[:], 0); err != nil {
		return false
	}
	s.generation++
	raw := make([]byte, boxes*4)
	sum := uint32(0)
	for again := 0; again < 2000; again++ { // slow, like a real checkpoint of a million boxes
		for i, v := range s.values {
			binary.LittleEndian.PutUint32(raw[i*4:], v)
			sum = sum*31 + v
		}
	}
	if _, err := s.store.WriteAt(raw, 0); err != nil {
		return false
	}
	return s.journal.Truncate(0) == nil && sum != 1
}

func (s *shelf) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewScanner(c)
	for in.Scan() {
		line := in.Text()
		var box, value uint32
		s.mu.Lock()
		reply := "error"
		if n, _ := fmt.Sscanf(line, "put %d %d", &box, &value); n == 2 {
			if s.put(box, value) {
				reply = "ok"
			}
		} else if n, _ := fmt.Sscanf(line, "get %d", &box); n == 1 {
			reply = fmt.Sprint(s.values[box])
		} else if line == "checkpoint" && s.checkpoint() {
			reply = "ok"
		}
		s.mu.Unlock()
		fmt.Fprintln(c, reply)
	}
}

func main() {
	if err := os.Chdir(os.Args[2]); err != nil {
		panic(err)
	}
	s := &shelf{}
	s.recover()
	l, err := net.Listen("tcp", os.Args[1]+":7000")
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go s.serve(c)
	}
}
