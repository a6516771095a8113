//go:build !before136

package main

import "k8s.io/client-go/tools/cache"

func (synced) HasSyncedChecker() cache.DoneChecker { return done{} }

type done struct{}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (done) Name() string          { return "static" }
func (done) Done() <-chan struct{} { return closed }

func (s staticInformer) HasSyncedChecker() cache.DoneChecker { return done{} }
