package main

import (
	"fmt"
	"time"

	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/core"
)

// An interface has its name and its counters together; a long directory is renewed at most a twentieth of the time, so that a new one may
// take a moment.
func seen(conn *core.StatsConnection, name string) error {
	var interfaces api.InterfaceStats
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if err := conn.GetInterfaceStats(&interfaces); err != nil {
			return err
		}
		for _, counters := range interfaces.Interfaces {
			if counters.InterfaceName == "" {
				return fmt.Errorf("interface %d of %d has no name", counters.InterfaceIndex, len(interfaces.Interfaces))
			}
			if counters.InterfaceName == name {
				return nil
			}
		}
	}
	return fmt.Errorf("no %s among %d interfaces", name, len(interfaces.Interfaces))
}

func statistics(c *client) error {
	conn, err := core.ConnectStats(statsclient.NewStatsClient(c.stats))
	if err != nil {
		return err
	}
	defer conn.Disconnect()
	var system api.SystemStats
	if err := conn.GetSystemStats(&system); err != nil {
		return err
	}
	if system.Heartbeat == 0 && system.LastUpdate == 0 {
		return fmt.Errorf("the system's values are 0: %+v", system)
	}
	if err := seen(conn, "loop0"); err != nil {
		return err
	}
	var nodes api.NodeStats
	if err := conn.GetNodeStats(&nodes); err != nil {
		return err
	}
	if len(nodes.Nodes) < 50 {
		return fmt.Errorf("%d nodes", len(nodes.Nodes))
	}
	var errors api.ErrorStats
	if err := conn.GetErrorStats(&errors); err != nil {
		return err
	}
	if len(errors.Errors) == 0 {
		return fmt.Errorf("no error counters")
	}
	var buffers api.BufferStats
	if err := conn.GetBufferStats(&buffers); err != nil {
		return err
	}
	if len(buffers.Buffer) == 0 {
		return fmt.Errorf("no buffer pools")
	}
	var memory api.MemoryStats
	return conn.GetMemoryStats(&memory)
}
