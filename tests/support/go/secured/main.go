// Logins of sarama and of franz-go: secured-client sarama|franz-go < CASES
//
// The input is a list of cases in JSON, as tests/support/secured_clients.py writes it. Each case
// produces a record and reads it in a group. A line of JSON says what it read, or its error.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync"
	"time"
)

const patience = 2 * time.Minute

type login struct {
	Name        string
	Address     string
	CA          string
	Certificate string
	Mechanism   string
	User        string
	Password    string
	Token       string
	Topic       string
	Keytab      string
	Krb5Conf    string `json:"krb5_conf"`
	Realm       string
}

// Of produces the name of the case, and returns what it reads.
type client func(until context.Context, one login) (string, error)

var clients = map[string]client{"sarama": withSarama, "franz-go": withFranz}

func main() {
	writeAndRead := clients[os.Args[1]]
	var cases []login
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		log.Fatal(err)
	}
	until, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	var all sync.WaitGroup
	var mutex sync.Mutex // lines are written whole
	for _, one := range cases {
		all.Go(func() {
			outcome := map[string]string{}
			read, err := writeAndRead(until, one)
			if err != nil {
				outcome["error"] = err.Error()
			} else {
				outcome["read"] = read
			}
			line, _ := json.Marshal(map[string]any{"name": one.Name, "outcome": outcome})
			mutex.Lock()
			defer mutex.Unlock()
			fmt.Println(string(line))
		})
	}
	all.Wait()
}

// Returns nil for a case without TLS.
func (one login) tls() (*tls.Config, error) {
	if one.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(one.CA)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: trusted}
	if one.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(one.Certificate, one.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
