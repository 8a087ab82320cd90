package main

import (
	"context"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// Sarama asks the program for SCRAM's messages.
type conversation struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (one *conversation) Begin(user, password, identity string) error {
	client, err := one.hash.NewClient(user, password, identity)
	if err == nil {
		one.ClientConversation = client.NewConversation()
	}
	return err
}

type token string

func (value token) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(value)}, nil
}

func saramaConfig(one login) (*sarama.Config, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	settings, err := one.tls()
	config.Net.TLS.Enable, config.Net.TLS.Config = settings != nil, settings
	if one.Mechanism == "" {
		return config, err
	}
	config.Net.SASL.Enable = true
	config.Net.SASL.Mechanism = sarama.SASLMechanism(one.Mechanism)
	config.Net.SASL.User, config.Net.SASL.Password = one.User, one.Password
	config.Net.SASL.TokenProvider = token(one.Token)
	config.Net.SASL.GSSAPI = sarama.GSSAPIConfig{
		AuthType:           sarama.KRB5_KEYTAB_AUTH,
		KeyTabPath:         one.Keytab,
		KerberosConfigPath: one.Krb5Conf,
		ServiceName:        "kafka",
		Username:           one.User,
		Realm:              one.Realm,
		DisablePAFXFAST:    true,
	}
	hash := scram.SHA256
	if one.Mechanism == sarama.SASLTypeSCRAMSHA512 {
		hash = scram.SHA512
	}
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		return &conversation{hash: hash}
	}
	return config, err
}

type firstValue struct {
	value chan string
}

func (first firstValue) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (first firstValue) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (first firstValue) ConsumeClaim(
	_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for record := range claim.Messages() {
		first.value <- string(record.Value)
		return nil
	}
	return nil
}

func withSarama(until context.Context, one login) (string, error) {
	config, err := saramaConfig(one)
	if err != nil {
		return "", err
	}
	addresses := []string{one.Address}
	producer, err := sarama.NewSyncProducer(addresses, config)
	if err != nil {
		return "", err
	}
	defer producer.Close()
	message := &sarama.ProducerMessage{Topic: one.Topic, Value: sarama.StringEncoder(one.Name)}
	if _, _, err = producer.SendMessage(message); err != nil {
		return "", err
	}
	group, err := sarama.NewConsumerGroup(addresses, one.Topic, config)
	if err != nil {
		return "", err
	}
	defer group.Close()
	first := firstValue{make(chan string, 1)}
	if err = group.Consume(until, []string{one.Topic}, first); err != nil {
		return "", err
	}
	select {
	case value := <-first.value:
		return value, nil
	default:
		return "", until.Err()
	}
}
