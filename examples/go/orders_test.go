package orders

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// The protocol in Go: start minibroker, wait for its ready file, make a client's request fail.
func TestARecordIsWrittenThoughTheLeaderMoves(t *testing.T) {
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
	var address, control string
	fmt.Sscanf(string(lines), "minibroker listening on %s\nminibroker control on %s", &address, &control)

	fault := `{"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2}`
	answer, err := http.Post(control+"/faults", "application/json", strings.NewReader(fault))
	if err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatal(answer, err)
	}
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer([]string{address}, config)
	if err != nil {
		t.Fatal(err)
	}
	record := &sarama.ProducerMessage{Topic: "orders", Value: sarama.StringEncoder("first")}
	if _, offset, err := producer.SendMessage(record); err != nil || offset != 0 {
		t.Fatal(offset, err)
	}
}
