// A GoVPP program against the router: the bindings are generated from share/api, as its users generate theirs.
//
// Arguments: the API's socket, the stats segment's socket. Prints a line for each check: ok or FAIL and why.
package main

import (
	"fmt"
	"os"
	"time"

	"go.fd.io/govpp"
	"go.fd.io/govpp/core"
)

type check struct {
	name string
	run  func(*client) error
}

// What the checks share.
type client struct {
	conn  *core.Connection
	stats string
}

var checks = []check{
	{"every message of every file is known with its CRC", compatible},
	{"the router names itself", version},
	{"a request is refused with VPP's return value", refused},
	{"interfaces are made, set up and dumped", interfaces},
	{"events reach who asked for them", events},
	{"routes of both families are added and dumped", routes},
	{"ten thousand requests at once are answered in order", pipelined},
	{"a command is run", command},
	{"the stats segment is read", statistics},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: govpp API-SOCKET STATS-SOCKET")
		os.Exit(2)
	}
	conn, state, err := govpp.AsyncConnect(os.Args[1], 20, 100*time.Millisecond)
	if err != nil {
		fmt.Println("FAIL govpp connects:", err)
		os.Exit(1)
	}
	select {
	case event := <-state:
		if event.State != core.Connected {
			fmt.Printf("FAIL govpp connects: %v %v\n", event.State, event.Error)
			os.Exit(1)
		}
	case <-time.After(10 * time.Second):
		fmt.Println("FAIL govpp connects: not within 10 seconds")
		os.Exit(1)
	}
	fmt.Println("ok govpp connects")
	failed := false
	shared := &client{conn: conn, stats: os.Args[2]}
	for _, check := range checks {
		if err := check.run(shared); err != nil {
			fmt.Printf("FAIL govpp %s: %v\n", check.name, err)
			failed = true
		} else {
			fmt.Println("ok govpp", check.name)
		}
	}
	conn.Disconnect()
	if failed {
		os.Exit(1)
	}
}
