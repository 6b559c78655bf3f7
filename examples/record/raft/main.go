// A number that three nodes agree on, by etcd's raft module. Clients add to it and read it at any node. To answer a
// read, a node asks the leader how far the log has come. One loop takes all inputs of a node, one after the other.
// Everything is in memory.
//
//	raft-counter -id 1 -nodes IP,IP,IP                 a node; clients come to port 7000, nodes to 7100
//	raft-counter load -nodes IP,IP,IP [-writers 4] [-readers 4] [-seconds 5] [-move 300ms]
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

const tickEvery = 20 * time.Millisecond
const keptEntries = 10000

// An input from outside.
type input struct {
	// 't' time passed; 'm' a message of raft; 'a' node `from` asks for the log's position; 'i' the answer to that; 'c' a
	// line of client `from`
	kind byte
	from uint64
	data []byte
}

func (in input) encoded(to []byte) []byte {
	return append(binary.BigEndian.AppendUint64(append(to, in.kind), in.from), in.data...)
}

func decoded(bytes []byte) input {
	return input{bytes[0], binary.BigEndian.Uint64(bytes[1:]), bytes[9:]}
}

func numbers(values ...uint64) (bytes []byte) {
	for _, value := range values {
		bytes = binary.BigEndian.AppendUint64(bytes, value)
	}
	return bytes
}

func number(bytes []byte, n int) uint64 { return binary.BigEndian.Uint64(bytes[8*n:]) }

type waitingRead struct{ client, index uint64 }

type node struct {
	id      uint64
	raw     *raft.RawNode
	storage *raft.MemoryStorage
	network *network

	value, applied uint64
	asked          uint64            // number of the last request of a client
	adds, reads    map[uint64]uint64 // the waiting client, by number
	waiting        []waitingRead     // until enough is applied
	members        pb.ConfState
}

func (n *node) step(in input) {
	switch in.kind {
	case 't':
		n.raw.Tick()
	case 'm':
		var message pb.Message
		if err := message.Unmarshal(in.data); err == nil {
			_ = n.raw.Step(message) // raft drops messages that do not fit
		}
	case 'a':
		if n.raw.BasicStatus().RaftState != raft.StateLeader {
			panic(fmt.Sprintf("node %d was asked by node %d how far the log has come, and does not lead", n.id, in.from))
		}
		n.raw.ReadIndex(numbers(in.from, number(in.data, 0)))
	case 'i':
		n.readAt(number(in.data, 0), number(in.data, 1))
	case 'c':
		n.request(in.from, string(in.data))
	}
	n.ready()
}

func (n *node) request(client uint64, line string) {
	var amount uint64
	leader := n.raw.BasicStatus().Lead
	n.asked++
	switch {
	case leader == raft.None:
		n.network.reply(client, "RETRY")
	case line == "READ" && leader == n.id:
		n.reads[n.asked] = client
		n.raw.ReadIndex(numbers(n.id, n.asked))
	case line == "READ":
		n.reads[n.asked] = client
		n.network.send(leader, 'a', numbers(n.asked))
	case line == "LEADER":
		n.network.reply(client, fmt.Sprint(leader))
	case strings.HasPrefix(line, "MOVE "):
		_, _ = fmt.Sscan(line[5:], &amount)
		n.raw.TransferLeader(amount)
		n.network.reply(client, "OK")
	case strings.HasPrefix(line, "ADD "):
		_, _ = fmt.Sscan(line[4:], &amount)
		if n.raw.Propose(numbers(n.id, n.asked, amount)) != nil {
			n.network.reply(client, "RETRY")
			return
		}
		n.adds[n.asked] = client
	default:
		n.network.reply(client, "ERROR expected ADD number, READ, LEADER or MOVE node")
	}
}

func (n *node) readAt(request, index uint64) {
	client, known := n.reads[request]
	delete(n.reads, request)
	if known {
		n.waiting = append(n.waiting, waitingRead{client, index})
	}
}

// Carries out what raft requests after a step.
func (n *node) ready() {
	for n.raw.HasReady() {
		todo := n.raw.Ready()
		if !raft.IsEmptySnap(todo.Snapshot) {
			_ = n.storage.ApplySnapshot(todo.Snapshot)
			n.applied, n.value = todo.Snapshot.Metadata.Index, number(todo.Snapshot.Data, 0)
			n.members = todo.Snapshot.Metadata.ConfState
		}
		if !raft.IsEmptyHardState(todo.HardState) {
			_ = n.storage.SetHardState(todo.HardState)
		}
		_ = n.storage.Append(todo.Entries)
		for _, message := range todo.Messages {
			if bytes, err := message.Marshal(); err == nil {
				n.network.send(message.To, 'm', bytes)
			}
		}
		for _, read := range todo.ReadStates {
			if asker := number(read.RequestCtx, 0); asker != n.id {
				n.network.send(asker, 'i', numbers(number(read.RequestCtx, 1), read.Index))
			} else {
				n.readAt(number(read.RequestCtx, 1), read.Index)
			}
		}
		for _, entry := range todo.CommittedEntries {
			n.apply(entry)
		}
		n.raw.Advance(todo)
	}
	left := n.waiting[:0]
	for _, read := range n.waiting {
		if read.index > n.applied {
			left = append(left, read)
		} else {
			n.network.reply(read.client, fmt.Sprint(n.value))
		}
	}
	n.waiting = left
	status := n.raw.BasicStatus()
	compareState(status.Term, status.Commit, status.Lead, n.applied, n.value)
}

func (n *node) apply(entry pb.Entry) {
	n.applied = entry.Index
	if entry.Type != pb.EntryNormal || len(entry.Data) == 0 {
		return
	}
	n.value += number(entry.Data, 2)
	if client, ours := n.adds[number(entry.Data, 1)]; ours && number(entry.Data, 0) == n.id {
		delete(n.adds, number(entry.Data, 1))
		n.network.reply(client, "OK")
	}
	if first, _ := n.storage.FirstIndex(); n.applied > first+2*keptEntries {
		if _, err := n.storage.CreateSnapshot(n.applied, &n.members, numbers(n.value)); err == nil {
			_ = n.storage.Compact(n.applied - keptEntries)
		}
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "load" {
		load(os.Args[2:])
		return
	}
	id := flag.Uint64("id", 0, "number of this node, from 1 on")
	list := flag.String("nodes", "", "addresses of all nodes, in their order")
	flag.Parse()
	addresses := strings.Split(*list, ",")
	if *id < 1 || *id > uint64(len(addresses)) {
		log.Fatalf("-id %d is none of the %d -nodes", *id, len(addresses))
	}
	begin()
	n := &node{id: *id, storage: raft.NewMemoryStorage(), adds: map[uint64]uint64{}, reads: map[uint64]uint64{}}
	for member := range addresses {
		n.members.Voters = append(n.members.Voters, uint64(member+1))
	}
	first := pb.SnapshotMetadata{ConfState: n.members, Index: 1, Term: 1}
	if err := n.storage.ApplySnapshot(pb.Snapshot{Data: numbers(0), Metadata: first}); err != nil {
		log.Fatal(err)
	}
	n.applied = 1
	var err error
	n.raw, err = raft.NewRawNode(&raft.Config{ID: n.id, ElectionTick: 10, HeartbeatTick: 2, Storage: n.storage, Applied: 1,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256,
		CheckQuorum: true})
	if err != nil {
		log.Fatal(err)
	}
	n.network = newNetwork(n.id, addresses)
	if !replaying {
		n.network.start()
	}
	for {
		n.step(take(n.network.inputs))
	}
}
