package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A request is written as bytes that were made once, and of an answer only its length is read: net/http's client
// costs more than either server.
type client struct {
	connection *tls.Conn
	reader     *bufio.Reader
	request    []byte
}

func dial(address string, trust *tls.Config, request []byte) (*client, error) {
	connection, err := tls.Dial("tcp", address, trust)
	if err != nil {
		return nil, err
	}
	return &client{connection, bufio.NewReader(connection), request}, nil
}

// Connections that have asked once: one that stays silent for as long as many others take to dial would be ended.
func dialled(address string, trust *tls.Config, request []byte, count int) ([]*client, error) {
	clients := make([]*client, count)
	errors := make([]error, count)
	room := make(chan struct{}, 32)
	var wait sync.WaitGroup
	for index := range clients {
		wait.Add(1)
		room <- struct{}{}
		go func() {
			defer wait.Done()
			defer func() { <-room }()
			if clients[index], errors[index] = dial(address, trust, request); errors[index] == nil {
				errors[index] = clients[index].ask()
			}
		}()
	}
	wait.Wait()
	for _, err := range errors {
		if err != nil {
			return nil, err
		}
	}
	return clients, nil
}

func (c *client) ask() error {
	// As net/http writes, and so kube-apiserver: a full buffer of 4 KiB first, then the rest.
	head := min(len(c.request), 4096)
	if _, err := c.connection.Write(c.request[:head]); err != nil {
		return err
	}
	if _, err := c.connection.Write(c.request[head:]); err != nil {
		return err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("answer: %s", line)
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte("content-length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	_, err := c.reader.Discard(length)
	return err
}

type result struct {
	Requests int     `json:"requests"`
	Errors   int     `json:"errors"`
	Seconds  float64 `json:"seconds"`
	PerSec   float64 `json:"perSecond"`
	P50      float64 `json:"p50Milliseconds"`
	P99      float64 `json:"p99Milliseconds"`
	First    string  `json:"firstError,omitempty"`
}

func load(arguments []string) error {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	target := flags.String("url", "", "where to post")
	ca := flags.String("ca", "", "CA file")
	file := flags.String("body", "", "body file")
	connections := flags.Int("connections", 1, "how many")
	seconds := flags.Float64("seconds", 3, "how long")
	rate := flags.Float64("rate", 0, "requests per second in all; 0: as fast as answers come")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	parsed, err := url.Parse(*target)
	if err != nil {
		return err
	}
	body, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	trust := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\n"+
		"Content-Length: %d\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"+
		"Accept-Encoding: gzip\r\n\r\n", parsed.RequestURI(), len(body))
	request := append([]byte(head), body...)

	clients, err := dialled(parsed.Host, trust, request, *connections)
	if err != nil {
		return err
	}
	length := time.Duration(*seconds * float64(time.Second))
	var made result
	if *rate > 0 {
		made = open(clients, length, *rate)
	} else {
		made = closed(clients, length)
	}
	return json.NewEncoder(os.Stdout).Encode(made)
}

// Every connection asks again as soon as it is answered.
func closed(clients []*client, length time.Duration) result {
	times := make([][]time.Duration, len(clients))
	errors := make([]error, len(clients))
	began := time.Now()
	end := began.Add(length)
	var wait sync.WaitGroup
	for index, one := range clients {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for {
				start := time.Now()
				if start.After(end) {
					return
				}
				if errors[index] = one.ask(); errors[index] != nil {
					return
				}
				times[index] = append(times[index], time.Since(start))
			}
		}()
	}
	wait.Wait()
	return summary(slices.Concat(times...), errors, time.Since(began))
}

// Requests are due at fixed times whatever the server does; the wait for a free connection counts as latency.
func open(clients []*client, length time.Duration, rate float64) result {
	count := int(length.Seconds() * rate)
	due := make(chan time.Time, count)
	times := make([][]time.Duration, len(clients))
	errors := make([]error, len(clients))
	var wait sync.WaitGroup
	for index, one := range clients {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for at := range due {
				if errors[index] = one.ask(); errors[index] != nil {
					return
				}
				times[index] = append(times[index], time.Since(at))
			}
		}()
	}
	began := time.Now()
	for number := range count {
		at := began.Add(time.Duration(float64(number) / rate * float64(time.Second)))
		time.Sleep(time.Until(at))
		due <- at
	}
	close(due)
	wait.Wait()
	return summary(slices.Concat(times...), errors, time.Since(began))
}

func summary(times []time.Duration, errors []error, took time.Duration) result {
	made := result{Requests: len(times), Seconds: took.Seconds(), PerSec: float64(len(times)) / took.Seconds()}
	for _, err := range errors {
		if err != nil {
			made.Errors++
			made.First = err.Error()
		}
	}
	if len(times) > 0 {
		slices.Sort(times)
		made.P50 = milliseconds(times[len(times)/2])
		made.P99 = milliseconds(times[len(times)*99/100])
	}
	return made
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration.Microseconds()) / 1000
}
