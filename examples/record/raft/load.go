package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"net"
	"sort"
	"strings"
	"sync"
	"time"
)

// One client of one node: repeats its request until there is an answer, or until `stop`, when it returns false.
type client struct {
	address    string
	connection net.Conn
	answers    *bufio.Reader
}

func (c *client) ask(line string, stop time.Time) (string, bool) {
	for time.Now().Before(stop) {
		if c.connection == nil {
			connection, err := net.DialTimeout("tcp", c.address, time.Second)
			if err != nil {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			c.connection, c.answers = connection, bufio.NewReader(connection)
		}
		_ = c.connection.SetDeadline(time.Now().Add(time.Second))
		_, err := c.connection.Write([]byte(line + "\n"))
		answer := ""
		if err == nil {
			answer, err = c.answers.ReadString('\n')
		}
		if err != nil {
			c.connection.Close()
			c.connection = nil
		} else if answer != "RETRY\n" {
			return strings.TrimSpace(answer), true
		} else {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return "", false
}

// Prints the additions per second, and the latency that only the slowest percent exceeds.
func load(arguments []string) {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	list := flags.String("nodes", "", "addresses of all nodes")
	writers := flags.Int("writers", 4, "clients that add, by turns at all nodes")
	readers := flags.Int("readers", 4, "clients that read, by turns at all nodes")
	seconds := flags.Float64("seconds", 5, "how long")
	move := flags.Duration("move", 0, "hand the lead on this often")
	_ = flags.Parse(arguments)
	addresses := strings.Split(*list, ",")
	ready := &client{address: addresses[0] + clientPort}
	if _, ok := ready.ask("ADD 0", time.Now().Add(20*time.Second)); !ok {
		log.Fatal("no node answers")
	}
	begun := time.Now()
	stop := begun.Add(time.Duration(*seconds * float64(time.Second)))
	var all sync.WaitGroup
	var mutex sync.Mutex
	var took []time.Duration
	run := func(i int, line string, keep bool) {
		defer all.Done()
		own := []time.Duration{}
		c := &client{address: addresses[i%len(addresses)] + clientPort}
		for {
			from := time.Now()
			if _, ok := c.ask(line, stop); !ok {
				break
			}
			own = append(own, time.Since(from))
		}
		if keep {
			mutex.Lock()
			took = append(took, own...)
			mutex.Unlock()
		}
	}
	for i := 0; i < *writers; i++ {
		all.Add(1)
		go run(i, "ADD 1", true)
	}
	for i := 0; i < *readers; i++ {
		all.Add(1)
		go run(i, "READ", *writers == 0)
	}
	for *move > 0 && time.Now().Before(stop) {
		time.Sleep(*move)
		if leader, ok := ready.ask("LEADER", stop); ok {
			at := int(leader[0] - '1')
			node := &client{address: addresses[at%len(addresses)] + clientPort}
			node.ask(fmt.Sprintf("MOVE %d", (at+1)%len(addresses)+1), stop)
		}
	}
	all.Wait()
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	if len(took) == 0 {
		log.Fatal("nothing was done")
	}
	fmt.Printf("%.0f a second, 99th percentile %.3f ms\n", float64(len(took))/time.Since(begun).Seconds(),
		float64(took[len(took)*99/100].Microseconds())/1000)
}
