// Schemas of franz-go: registry-client REGISTRY ADDRESS TOPIC
//
// Registers a schema, writes a record with the header of its id, reads it and finds the schema by the
// id. Then it walks the rest of what the package `sr` asks a registry. Prints a line of JSON for each
// answer; an error ends it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

const (
	first  = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	second = `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}`
)

type order struct {
	ID int64 `json:"id"`
}

func show(name string, value any) {
	line, err := json.Marshal(map[string]any{name: value})
	check(err)
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func roundTrip(ctx context.Context, registry *sr.Client, address, topic string, id int) {
	var serde sr.Serde
	serde.Register(id, order{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.ConsumeTopics(topic),
		kgo.DefaultProduceTopic(topic),
		kgo.AllowAutoTopicCreation(),
	)
	check(err)
	defer client.Close()
	record := &kgo.Record{Value: serde.MustEncode(order{ID: 7})}
	check(client.ProduceSync(ctx, record).FirstErr())
	fetches := client.PollFetches(ctx)
	check(fetches.Err())
	value := fetches.Records()[0].Value
	readID, _, err := serde.DecodeID(value)
	check(err)
	schema, err := registry.SchemaByID(ctx, readID)
	check(err)
	var decoded order
	check(serde.Decode(value, &decoded))
	show("read", map[string]any{"schema": schema.Schema, "value": decoded.ID})
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	subject := os.Args[3] + "-value"
	registry, err := sr.NewClient(sr.URLs(os.Args[1]))
	check(err)
	created, err := registry.CreateSchema(ctx, subject, sr.Schema{Schema: first})
	check(err)
	show("created", map[string]any{"id": created.ID, "version": created.Version})
	roundTrip(ctx, registry, os.Args[2], os.Args[3], created.ID)

	compatible, err := registry.CheckCompatibility(ctx, subject, -1, sr.Schema{Schema: second})
	check(err)
	show("compatible", compatible.Is)
	_, err = registry.CreateSchema(ctx, subject, sr.Schema{Schema: second})
	var refusal *sr.ResponseError
	if !errors.As(err, &refusal) {
		log.Fatalf("an incompatible schema: %v", err)
	}
	show("refused", refusal.ErrorCode)
	for _, result := range registry.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatNone}, subject) {
		check(result.Err)
		show("level", result.Level.String())
	}
	_, err = registry.CreateSchema(ctx, subject, sr.Schema{Schema: second})
	check(err)
	for _, result := range registry.Compatibility(ctx, subject) {
		check(result.Err)
		show("level", result.Level.String())
	}
	found, err := registry.LookupSchema(ctx, subject, sr.Schema{Schema: second})
	check(err)
	show("found", found.Version)
	versions, err := registry.SubjectVersions(ctx, subject)
	check(err)
	show("versions", versions)
	usages, err := registry.SchemaUsagesByID(ctx, created.ID)
	check(err)
	show("usages", len(usages))
	subjects, err := registry.Subjects(ctx)
	check(err)
	show("subjects", subjects)
	for _, result := range registry.Mode(ctx) {
		check(result.Err)
		show("mode", result.Mode.String())
	}
	types, err := registry.SupportedTypes(ctx)
	check(err)
	show("types", len(types) > 0)
	// The library reads another field of the answer than Confluent's registry writes.
	for _, result := range registry.ResetCompatibility(ctx, subject) {
		check(result.Err)
		show("reset", result.Subject)
	}
	deleted, err := registry.DeleteSubject(ctx, subject, sr.SoftDelete)
	check(err)
	show("deleted", deleted)
	deleted, err = registry.DeleteSubject(ctx, subject, sr.HardDelete)
	check(err)
	show("deleted", deleted)
	_, err = registry.SchemaByID(ctx, created.ID)
	if !errors.As(err, &refusal) {
		log.Fatalf("a schema that is gone: %v", err)
	}
	show("refused", refusal.ErrorCode)
}
