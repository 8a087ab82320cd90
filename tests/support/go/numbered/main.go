// An idempotent producer with franz-go: numbered-client ADDRESS TOPIC
//
// For each line COUNT on standard input it sends that many records, each in a batch of its own. Their
// values are the next numbers from 0 on. Prints "NUMBER at OFFSET" for a record that is acknowledged,
// else "NUMBER failed: ERROR". Ends with its input.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	pause = 20 * time.Millisecond
	// The smallest limit of a batch that the library takes; two such keys are longer.
	batchBytes = 512
	keyBytes   = 300
)

func printOutcome(record *kgo.Record, err error) {
	if err != nil {
		fmt.Printf("%s failed: %q\n", record.Value, err)
		return
	}
	fmt.Printf("%s at %d\n", record.Value, record.Offset)
}

func main() {
	address, topic := os.Args[1], os.Args[2]
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchMaxBytes(batchBytes),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(pause),
		kgo.RetryBackoffFn(func(int) time.Duration { return pause }),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	key := strings.Repeat("k", keyBytes)
	next := 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		count, err := strconv.Atoi(lines.Text())
		if err != nil {
			log.Fatal(err)
		}
		for range count {
			record := kgo.KeyStringRecord(key, strconv.Itoa(next))
			client.Produce(context.Background(), record, printOutcome)
			next++
		}
	}
}
