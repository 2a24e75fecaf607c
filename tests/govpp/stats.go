package main

import (
	"fmt"

	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/core"
)

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
	var interfaces api.InterfaceStats
	if err := conn.GetInterfaceStats(&interfaces); err != nil {
		return err
	}
	found := false
	for _, counters := range interfaces.Interfaces {
		found = found || counters.InterfaceName == "loop0"
	}
	if !found {
		return fmt.Errorf("no loop0 among %d interfaces", len(interfaces.Interfaces))
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
