package client

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"minibroker/examples/client/control"
)

func start(t *testing.T) *control.ClientWithResponses {
	ready := filepath.Join(t.TempDir(), "ready")
	broker := exec.Command("minibroker", "serve", "--memory", "--topic", "orders",
		"--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--ready-file", ready)
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Process.Signal(os.Interrupt); broker.Wait() })
	lines, err := os.ReadFile(ready)
	for ; err != nil; lines, err = os.ReadFile(ready) {
		time.Sleep(5 * time.Millisecond)
	}
	var address, url string
	fmt.Sscanf(string(lines), "minibroker listening on %s\nminibroker control on %s", &address, &url)
	client, err := control.NewClientWithResponses(url)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func some[T any](value T) *T { return &value }

// The generated client of the control API, on a minibroker of its own.
func TestTheGeneratedClient(t *testing.T) {
	client, background := start(t), context.Background()

	order := control.NewRecord{Value: some[any](map[string]any{"amount": 12}), Key: some[any]("o-1"),
		Headers: &[][]any{{"source", "web"}}}
	tombstone := control.NewRecord{Key: some[any]("o-1")}
	written, err := client.WriteRecordsWithResponse(background, "orders",
		control.NewRecords{Records: []control.NewRecord{order, tombstone}})
	if err != nil || written.JSON200 == nil || written.JSON200.Records[1].Offset != 1 {
		t.Fatal(written, err)
	}
	read, err := client.ReadRecordsWithResponse(background, "orders", &control.ReadRecordsParams{
		Format: some(control.Json), AtLeast: some[int64](2), WaitMs: some[int64](10_000)})
	if err != nil || read.JSON200 == nil || len(read.JSON200.Records) != 2 {
		t.Fatal(read, err)
	}
	first, second := read.JSON200.Records[0], read.JSON200.Records[1]
	if *first.Key != "o-1" || first.Value.(map[string]any)["amount"] != 12.0 || second.Value != nil {
		t.Fatal(first, second)
	}

	rule := control.FaultRule{Api: some("Produce"), Error: some("NOT_LEADER_OR_FOLLOWER"), Times: some[int64](2)}
	fault, err := client.AddFaultWithResponse(background, rule)
	if err != nil || fault.JSON201 == nil || *fault.JSON201.Times != 2 {
		t.Fatal(fault, err)
	}
	removed, err := client.RemoveFaultWithResponse(background, fault.JSON201.Id)
	if err != nil || removed.StatusCode() != http.StatusOK {
		t.Fatal(removed, err)
	}

	waited, err := client.WaitUntilReadyWithResponse(background, "billing",
		&control.WaitUntilReadyParams{Members: some[int64](2), TimeoutMs: some[int64](0)})
	if err != nil || waited.JSON504 == nil || !strings.Contains(waited.JSON504.Error, "no such group") {
		t.Fatal(waited, err)
	}
}
