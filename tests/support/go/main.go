// One member of a classic group with sarama: sarama-member ADDRESS GROUP TOPIC
//
// Prints "has 0 1" when its partitions changed and "read VALUE" per record, commits when it has read
// what came at once. SIGTERM leaves the group.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

type member struct {
	topic string
	mutex sync.Mutex // lines are written whole
}

func (one *member) say(words ...any) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	fmt.Println(words...)
}

func (one *member) Setup(session sarama.ConsumerGroupSession) error {
	partitions := slices.Clone(session.Claims()[one.topic])
	slices.Sort(partitions)
	words := []any{"has"}
	for _, partition := range partitions {
		words = append(words, partition)
	}
	one.say(words...)
	return nil
}

func (one *member) Cleanup(sarama.ConsumerGroupSession) error {
	one.say("has")
	return nil
}

func (one *member) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case record, isOpen := <-claim.Messages():
			if !isOpen {
				return nil
			}
			one.say("read", string(record.Value))
			session.MarkMessage(record, "")
			if len(claim.Messages()) == 0 {
				session.Commit()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func main() {
	address, groupID, topic := os.Args[1], os.Args[2], os.Args[3]
	sarama.Logger = log.New(os.Stderr, "", log.Ltime|log.Lmicroseconds)
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 2 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	config.Consumer.Group.Rebalance.Timeout = 10 * time.Second
	config.Consumer.MaxWaitTime = 200 * time.Millisecond
	group, err := sarama.NewConsumerGroup([]string{address}, groupID, config)
	if err != nil {
		log.Fatal(err)
	}
	until, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for until.Err() == nil {
		err = group.Consume(until, []string{topic}, &member{topic: topic})
		if err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) {
			log.Print(err)
		}
	}
	if err = group.Close(); err != nil {
		log.Fatal(err)
	}
}
