package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.fd.io/govpp/api"

	interfaces_api "shoal.test/govpp/binapi/interface"
	"shoal.test/govpp/binapi/ip"
	"shoal.test/govpp/binapi/vlib"
	"shoal.test/govpp/binapi/vpe"
)

// All that the generated packages have registered, asked for by name and CRC.
func compatible(c *client) error {
	count := 0
	for _, messages := range api.GetRegisteredMessages() {
		for _, message := range messages {
			if _, err := c.conn.GetMessageID(message); err != nil {
				return err
			}
			count++
		}
	}
	if count < 360 {
		return fmt.Errorf("only %d messages were compared", count)
	}
	fmt.Println("   messages compared:", count)
	return nil
}

func version(c *client) error {
	reply, err := vpe.NewServiceClient(c.conn).ShowVersion(context.Background(), &vpe.ShowVersion{})
	if err != nil {
		return err
	}
	if reply.Program == "" || reply.Version == "" {
		return fmt.Errorf("program %q, version %q", reply.Program, reply.Version)
	}
	return nil
}

func refused(c *client) error {
	service := interfaces_api.NewServiceClient(c.conn)
	_, err := service.SwInterfaceSetFlags(context.Background(), &interfaces_api.SwInterfaceSetFlags{SwIfIndex: 12345})
	var refusal api.VPPApiError
	if !errors.As(err, &refusal) || refusal != api.INVALID_SW_IF_INDEX {
		return fmt.Errorf("not an invalid interface: %v", err)
	}
	return nil
}

// A loopback, up, with an address of each family.
func loopback(c *client) (interfaces_api.InterfaceIndex, error) {
	ctx := context.Background()
	service := interfaces_api.NewServiceClient(c.conn)
	made, err := service.CreateLoopback(ctx, &interfaces_api.CreateLoopback{})
	if err != nil {
		return 0, err
	}
	_, err = service.SwInterfaceSetFlags(ctx, &interfaces_api.SwInterfaceSetFlags{
		SwIfIndex: made.SwIfIndex, Flags: interfaces_api.IF_STATUS_API_FLAG_ADMIN_UP,
	})
	return made.SwIfIndex, err
}

func interfaces(c *client) error {
	ctx := context.Background()
	service := interfaces_api.NewServiceClient(c.conn)
	index, err := loopback(c)
	if err != nil {
		return err
	}
	for _, text := range []string{"10.9.0.1/24", "2001:db8:9::1/64"} {
		prefix, err := interfaces_api.ParseAddressWithPrefix(text)
		if err != nil {
			return err
		}
		request := &interfaces_api.SwInterfaceAddDelAddress{SwIfIndex: index, IsAdd: true, Prefix: prefix}
		if _, err := service.SwInterfaceAddDelAddress(ctx, request); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	dump, err := service.SwInterfaceDump(ctx, &interfaces_api.SwInterfaceDump{SwIfIndex: ^interfaces_api.InterfaceIndex(0)})
	if err != nil {
		return err
	}
	found := false
	for {
		details, err := dump.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		up := details.Flags&interfaces_api.IF_STATUS_API_FLAG_ADMIN_UP != 0
		found = found || details.SwIfIndex == index && details.InterfaceName == "loop0" && up
	}
	if !found {
		return errors.New("loop0 was not dumped, or is down")
	}
	return nil
}

func events(c *client) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	service := interfaces_api.NewServiceClient(c.conn)
	index, err := loopback(c)
	if err != nil {
		return err
	}
	watcher, err := c.conn.WatchEvent(ctx, (*interfaces_api.SwInterfaceEvent)(nil))
	if err != nil {
		return err
	}
	defer watcher.Close()
	if _, err := service.WantInterfaceEvents(ctx, &interfaces_api.WantInterfaceEvents{EnableDisable: 1, PID: 1}); err != nil {
		return err
	}
	if _, err := service.DeleteLoopback(ctx, &interfaces_api.DeleteLoopback{SwIfIndex: index}); err != nil {
		return err
	}
	for {
		select {
		case event := <-watcher.Events():
			if told, ok := event.(*interfaces_api.SwInterfaceEvent); ok && told.SwIfIndex == index && told.Deleted {
				_, err := service.WantInterfaceEvents(ctx, &interfaces_api.WantInterfaceEvents{PID: 1})
				return err
			}
		case <-ctx.Done():
			return errors.New("no event of the deletion")
		}
	}
}

// A route to `prefix` that drops.
func route(prefix string) (*ip.IPRouteAddDel, error) {
	parsed, err := ip.ParsePrefix(prefix)
	if err != nil {
		return nil, err
	}
	paths := []ip.FibPath{{SwIfIndex: ^uint32(0), Type: ip.FIB_API_PATH_TYPE_DROP}}
	if parsed.Address.Af == ip.ADDRESS_IP6 {
		paths[0].Proto = ip.FIB_API_PATH_NH_PROTO_IP6
	}
	return &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: parsed, Paths: paths}}, nil
}

func dumped(c *client, ip6 bool) (map[string]bool, error) {
	dump, err := ip.NewServiceClient(c.conn).IPRouteDump(context.Background(), &ip.IPRouteDump{Table: ip.IPTable{IsIP6: ip6}})
	if err != nil {
		return nil, err
	}
	prefixes := map[string]bool{}
	for {
		details, err := dump.Recv()
		if err == io.EOF {
			return prefixes, nil
		}
		if err != nil {
			return nil, err
		}
		prefixes[details.Route.Prefix.String()] = true
	}
}

func routes(c *client) error {
	service := ip.NewServiceClient(c.conn)
	for _, prefix := range []string{"192.0.2.0/24", "2001:db8:77::/48"} {
		request, err := route(prefix)
		if err != nil {
			return err
		}
		if _, err := service.IPRouteAddDel(context.Background(), request); err != nil {
			return fmt.Errorf("%s: %w", prefix, err)
		}
		prefixes, err := dumped(c, request.Route.Prefix.Address.Af == ip.ADDRESS_IP6)
		if err != nil {
			return err
		}
		if !prefixes[prefix] {
			return fmt.Errorf("%s is not among the %d dumped", prefix, len(prefixes))
		}
	}
	return nil
}

func pipelined(c *client) error {
	const count = 10000
	channel, err := c.conn.NewAPIChannelBuffered(count, count)
	if err != nil {
		return err
	}
	defer channel.Close()
	channel.SetReplyTimeout(20 * time.Second)
	var waiting []api.RequestCtx
	for i := 0; i < count; i++ {
		request, err := route(fmt.Sprintf("172.%d.%d.%d/32", 16+i>>16, i>>8&255, i&255))
		if err != nil {
			return err
		}
		waiting = append(waiting, channel.SendRequest(request))
	}
	for i, request := range waiting {
		if err := request.ReceiveReply(&ip.IPRouteAddDelReply{}); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
	}
	prefixes, err := dumped(c, false)
	if err != nil {
		return err
	}
	if len(prefixes) < count {
		return fmt.Errorf("%d of %d routes were dumped", len(prefixes), count)
	}
	return nil
}

func command(c *client) error {
	reply, err := vlib.NewServiceClient(c.conn).CliInband(context.Background(), &vlib.CliInband{Cmd: "show version"})
	if err != nil {
		return err
	}
	if reply.Reply == "" {
		return errors.New("no answer")
	}
	return nil
}

