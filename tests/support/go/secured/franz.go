package main

import (
	"context"

	krb5 "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
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
	case "GSSAPI":
		return kerberos.Auth{ClientFn: one.ticketHolder, Service: "kafka"}.AsMechanism()
	}
	return nil
}

// Without a keytab there is no client, and the login fails.
func (one login) ticketHolder(context.Context) *krb5.Client {
	settings, err := config.Load(one.Krb5Conf)
	if err != nil {
		return nil
	}
	keys, err := keytab.Load(one.Keytab)
	if err != nil {
		return nil
	}
	return krb5.NewWithKeytab(one.User, one.Realm, keys, settings, krb5.DisablePAFXFAST(true))
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
