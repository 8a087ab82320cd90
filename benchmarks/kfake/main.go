// Command kfake serves franz-go's in-process Kafka stand-in as a process of its own, so that it can be measured like a broker.
package main

import (
	"flag"
	"log"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1")
	dataDir := flag.String("data-dir", "", "keep the log here; without it everything stays in memory")
	flag.Parse()
	options := []kfake.Opt{kfake.Ports(*port), kfake.NumBrokers(1), kfake.AllowAutoTopicCreation()}
	if *dataDir != "" {
		options = append(options, kfake.DataDir(*dataDir))
	}
	if _, err := kfake.NewCluster(options...); err != nil {
		log.Fatal(err)
	}
	select {}
}
