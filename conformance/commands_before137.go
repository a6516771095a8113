//go:build before137

package main

func newestCommands() []command { return nil }
