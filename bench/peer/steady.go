package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// What the chart says in its webhook configurations: a request whose answer takes longer is late.
const late = 2 * time.Second

// A Service: whoever dials it is led to one of its endpoints, which change while connections stay.
type service struct {
	lock      sync.Mutex
	endpoints []string
	next      int
}

func (s *service) set(endpoints []string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.endpoints = endpoints
}

func (s *service) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	s.lock.Lock()
	if len(s.endpoints) == 0 {
		s.lock.Unlock()
		return nil, fmt.Errorf("no endpoints")
	}
	s.next++
	address := s.endpoints[s.next%len(s.endpoints)]
	s.lock.Unlock()
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

// The client that kube-apiserver has for a webhook behind a Service: apiserver pkg/util/webhook/client.go, client-go
// transport/cache.go, apimachinery pkg/util/net/http.go.
func asApiserver(behind *service, ca []byte) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{
		DialContext:         behind.dial,
		TLSClientConfig:     &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"http/1.1"}},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
	}}
}

// What came of the requests that were due in one phase.
type phase struct {
	name     string
	patience time.Duration // of the client
	wait     sync.WaitGroup
	lock     sync.Mutex
	times    []time.Duration
	failures []string // but for answers that were merely late
	late     int
	inFlight int // at most
}

type told struct {
	Phase    string   `json:"phase"`
	Requests int      `json:"requests"`
	Failures int      `json:"failures"`
	Late     int      `json:"late"`
	InFlight int      `json:"inFlight"`
	First    []string `json:"first"`
	P50      float64  `json:"p50Milliseconds"`
	P99      float64  `json:"p99Milliseconds"`
	Slowest  float64  `json:"slowestMilliseconds"`
}

func (p *phase) told() told {
	p.wait.Wait()
	slices.Sort(p.times)
	first := append([]string{}, p.failures[:min(3, len(p.failures))]...)
	made := told{Phase: p.name, Requests: len(p.times), Failures: len(p.failures), Late: p.late, InFlight: p.inFlight, First: first}
	if count := len(p.times); count > 0 {
		made.P50 = milliseconds(p.times[count/2])
		made.P99 = milliseconds(p.times[count*99/100])
		made.Slowest = milliseconds(p.times[count-1])
	}
	return made
}

// The load, the client that it uses now, and the phase that its requests belong to.
type steadyLoad struct {
	behind *service
	body   []byte
	uid    []byte
	lock   sync.Mutex
	ca     []byte
	client *http.Client
	now    *phase
	flying int
}

// One request of the phase that is on, with a client that is given or the one of this moment.
func (s *steadyLoad) send(due time.Time, client *http.Client) {
	s.lock.Lock()
	current := s.now
	if client == nil {
		client = s.client
	}
	current.wait.Add(1)
	s.flying++
	current.inFlight = max(current.inFlight, s.flying)
	s.lock.Unlock()
	go func() {
		defer current.wait.Done()
		err := s.post(client, current.patience)
		took := time.Since(due)
		s.lock.Lock()
		s.flying--
		s.lock.Unlock()
		current.lock.Lock()
		defer current.lock.Unlock()
		current.times = append(current.times, took)
		if took > late {
			current.late++
		}
		if err != nil && (current.patience > late || !errors.Is(err, context.DeadlineExceeded)) {
			current.failures = append(current.failures, err.Error())
		}
	}()
}

// It retries nothing, as kube-apiserver does not.
func (s *steadyLoad) post(client *http.Client, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(
		ctx, http.MethodPost, "https://localhost/validate?timeout=2s", bytes.NewReader(s.body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || !bytes.Contains(text, s.uid) {
		return fmt.Errorf("answer: %s %.200s", answer.Status, text)
	}
	return nil
}

// Another caBundle is another client; connections of the former end once they are idle.
func (s *steadyLoad) trust(file string) error {
	ca, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s.lock.Lock()
	former := s.client
	s.ca, s.client = ca, asApiserver(s.behind, ca)
	s.lock.Unlock()
	if former != nil {
		former.CloseIdleConnections()
	}
	return nil
}

// So many clients of their own with so many requests each, all at once.
func (s *steadyLoad) burst(clients, requests int) {
	due := time.Now()
	for range clients {
		client := asApiserver(s.behind, s.ca)
		for range requests {
			s.send(due, client)
		}
	}
}

func (s *steadyLoad) begin(name string, patience time.Duration) told {
	s.lock.Lock()
	last := s.now
	s.now = &phase{name: name, patience: patience}
	s.lock.Unlock()
	return last.told()
}

func (s *steadyLoad) run(rate float64) {
	began := time.Now()
	for number := 0; ; number++ {
		due := began.Add(time.Duration(float64(number) / rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		s.send(due, nil)
	}
}

// Each line of the input is obeyed at once, and answered by a line.
func (s *steadyLoad) obey(line string) (any, error) {
	command, rest, _ := strings.Cut(line, " ")
	switch command {
	case "peers":
		s.behind.set(strings.Fields(rest))
	case "trust":
		return command, s.trust(rest)
	case "burst":
		var clients, requests int
		if _, err := fmt.Sscan(rest, &clients, &requests); err != nil {
			return nil, err
		}
		s.burst(clients, requests)
	case "phase":
		seconds, name, _ := strings.Cut(rest, " ")
		patience, err := time.ParseDuration(seconds)
		return s.begin(name, patience), err
	default:
		return nil, fmt.Errorf("%q is no command", command)
	}
	return command, nil
}

// Requests are due at fixed times whatever the server does, until the input ends.
func steady(arguments []string) error {
	flags := flag.NewFlagSet("steady", flag.ExitOnError)
	ca := flags.String("ca", "", "CA file")
	file := flags.String("body", "", "body file")
	rate := flags.Float64("rate", 200, "requests per second")
	peers := flags.String("peers", "", "where the Service leads at first")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	body, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	var asked review
	if err := json.Unmarshal(body, &asked); err != nil {
		return err
	}
	made := &steadyLoad{behind: &service{}, body: body, uid: []byte(asked.Request.UID), now: &phase{patience: late}}
	made.behind.set(strings.Fields(*peers))
	if err := made.trust(*ca); err != nil {
		return err
	}
	go made.run(*rate)
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		answer, err := made.obey(lines.Text())
		if err != nil {
			return err
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}
