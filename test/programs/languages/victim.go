// victim.c in Go.
package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

//go:noinline
func step(file *os.File, n int) {
	var number syscall.Errno
	if _, err := file.Read(make([]byte, 1)); errors.As(err, &number) {
		fmt.Printf("read %d = %s\n", n, map[bool]string{true: "Input/output error", false: number.Error()}[number == syscall.EIO])
	} else {
		fmt.Printf("read %d = ok\n", n)
	}
}

func main() {
	for {
		if _, err := os.Stat(os.Args[2]); err == nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	for n := 1; n <= 5; n++ {
		step(file, n)
	}
	fmt.Println("done")
	for {
		time.Sleep(time.Hour)
	}
}
