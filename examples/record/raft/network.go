package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"log"
	"net"
	"sync"
	"time"
)

const clientPort, nodePort = ":7000", ":7100"
const mostFrame = 16 << 20

// All messages that a node receives and sends.
type network struct {
	id        uint64
	addresses []string
	inputs    chan input
	peers     map[uint64]chan []byte

	mutex   sync.Mutex
	clients map[uint64]net.Conn
	last    uint64
}

func newNetwork(id uint64, addresses []string) *network {
	w := &network{id: id, addresses: addresses, inputs: make(chan input, 1024),
		peers: map[uint64]chan []byte{}, clients: map[uint64]net.Conn{}}
	for i := range addresses {
		w.peers[uint64(i+1)] = make(chan []byte, 4096)
	}
	return w
}

func (w *network) start() {
	for _, port := range []string{clientPort, nodePort} {
		listener, err := net.Listen("tcp", w.addresses[w.id-1]+port)
		if err != nil {
			log.Fatal(err)
		}
		serve := w.serveClient
		if port == nodePort {
			serve = w.servePeer
		}
		go func() {
			for {
				if connection, err := listener.Accept(); err == nil {
					go serve(connection)
				}
			}
		}()
	}
	for peer, frames := range w.peers {
		if peer != w.id {
			go w.talk(w.addresses[peer-1]+nodePort, frames)
		}
	}
	go func() {
		for range time.Tick(tickEvery) {
			w.inputs <- input{kind: 't'}
		}
	}()
}

// Drops what cannot be sent at once: Raft tolerates lost messages, and clients repeat their requests.
func (w *network) send(to uint64, kind byte, data []byte) {
	if replaying {
		return
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(9+len(data)))
	select {
	case w.peers[to] <- input{kind, w.id, data}.encoded(frame):
	default:
	}
}

func (w *network) talk(address string, frames <-chan []byte) {
	for {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for err == nil {
			_, err = connection.Write(<-frames)
		}
		connection.Close()
	}
}

func (w *network) servePeer(connection net.Conn) {
	defer connection.Close()
	in := bufio.NewReader(connection)
	for {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return
		}
		length := binary.BigEndian.Uint32(size[:])
		if length < 9 || length > mostFrame {
			return
		}
		frame := make([]byte, length)
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		w.inputs <- decoded(frame)
	}
}

func (w *network) serveClient(connection net.Conn) {
	w.mutex.Lock()
	w.last++
	client := w.last
	w.clients[client] = connection
	w.mutex.Unlock()
	lines := bufio.NewScanner(connection)
	for lines.Scan() {
		w.inputs <- input{'c', client, []byte(lines.Text())}
	}
	w.mutex.Lock()
	delete(w.clients, client)
	w.mutex.Unlock()
	connection.Close()
}

func (w *network) reply(client uint64, text string) {
	if replaying {
		return
	}
	w.mutex.Lock()
	connection := w.clients[client]
	w.mutex.Unlock()
	if connection != nil {
		_, _ = connection.Write([]byte(text + "\n"))
	}
}
