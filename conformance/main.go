// Command oracle runs the real Kubernetes scheduler plugins and the real
// kube-apiserver validation on scenarios given as JSON Lines, and prints what
// they decide. It also generates such scenarios and records vectors.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
)

type command struct {
	name, summary string
	run           func(args []string) error
}

func commands() []command {
	return append(newestCommands(), []command{
		{"verdict", "decide scheduling scenarios (JSON Lines in, JSON Lines out)", runVerdict},
		{"validate", "say what kube-apiserver would answer to a create request", runValidate},
		{"admit", "say what kube-apiserver's admission plugins make of a pod", runAdmit},
		{"args", "decode, default and validate PodTopologySpreadArgs", runArgs},
		{"generate", "generate random scenarios, deterministic in the seed", runGenerate},
		{"record", "generate scenarios and write them with their results as vectors", runRecord},
		{"check", "run vectors again and compare with their recorded results", runCheck},
		{"stats", "print histograms of vectors", runStats},
		{"types", "print what the JSON decoder knows of the kinds of validate and args", printTypes},
		{"version", "print the Kubernetes version compiled in", runVersion},
	}...)
}

func usage(w io.Writer) {
	fmt.Fprintf(w, "usage: oracle COMMAND [flags]\n\nCommands (each has --help):\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.summary)
	}
}

func main() {
	// The scheduler's own log would interleave with results.
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)

	if len(os.Args) < 2 {
		usage(os.Stderr)
		os.Exit(2)
	}
	name := os.Args[1]
	if name == "help" || name == "-h" || name == "--help" {
		usage(os.Stdout)
		return
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		if err := c.run(os.Args[2:]); err != nil {
			fmt.Fprintf(os.Stderr, "oracle %s: %v\n", name, err)
			os.Exit(1)
		}
		return
	}
	fmt.Fprintf(os.Stderr, "oracle: unknown command %q\n", name)
	usage(os.Stderr)
	os.Exit(2)
}

func runVersion([]string) error {
	fmt.Println(kubernetesVersion)
	return nil
}
