package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func (one login) mechanism() sasl.Mechanism {
	switch one.Mechanism {
	case "PLAIN":
		return plain.Auth{User: one.User, Pass: one.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: one.User, Pass: one.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: one.User, Pass: one.Password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: one.Token}.AsMechanism()
	}
	return nil
}

func withFranz(until context.Context, one login) (string, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(one.Address),
		kgo.ConsumerGroup(one.Topic),
		kgo.ConsumeTopics(one.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	settings, err := one.tls()
	if err != nil {
		return "", err
	}
	if settings != nil {
		options = append(options, kgo.DialTLSConfig(settings))
	}
	if mechanism := one.mechanism(); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return "", err
	}
	defer client.Close()
	if err = client.Ping(until); err != nil {
		return "", err
	}
	record := kgo.StringRecord(one.Name)
	record.Topic = one.Topic
	if err = client.ProduceSync(until, record).FirstErr(); err != nil {
		return "", err
	}
	fetches := client.PollFetches(until)
	if err = fetches.Err(); err != nil {
		return "", err
	}
	return string(fetches.Records()[0].Value), nil
}
