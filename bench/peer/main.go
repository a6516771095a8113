// The peer and the load of `make bench` and `make soak`: a Go net/http webhook with the same answer, a load generator that
// costs little enough to keep a server busy from one core, and a load at a steady rate by kube-apiserver's own client.
//
//	peer serve -cert F -key F -listen HOST:PORT
//	peer load -url https://HOST:PORT/validate -ca F -body F -connections N -seconds S [-rate R]
//	peer steady -peers 'HOST:PORT …' -ca F -body F [-rate R]   (obeys the lines of its input: steady.go)
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: peer serve|load|steady …")
	}
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(os.Args[2:])
	case "load":
		err = load(os.Args[2:])
	case "steady":
		err = steady(os.Args[2:])
	default:
		fail("usage: peer serve|load|steady …")
	}
	if err != nil {
		fail(err.Error())
	}
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, "peer: "+text)
	os.Exit(1)
}
