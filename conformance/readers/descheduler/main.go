// descheduler answers which pods the descheduler's RemovePodsViolatingTopologySpreadConstraint evicts: JSON Lines in, JSON
// Lines out.
//
// Nothing here re-implements the descheduler: the program builds its inputs, calls its code and writes down what it does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"sigs.k8s.io/descheduler/pkg/framework/plugins/defaultevictor"
	plugin "sigs.k8s.io/descheduler/pkg/framework/plugins/removepodsviolatingtopologyspreadconstraint"
	frameworktesting "sigs.k8s.io/descheduler/pkg/framework/testing"
	frameworktypes "sigs.k8s.io/descheduler/pkg/framework/types"
)

const version = "v0.36.0"

// Question is a cluster at rest. Soft asks for constraints that only prefer, too, which the plugin leaves out by default.
type Question struct {
	ID    string         `json:"id"`
	Nodes []*corev1.Node `json:"nodes"`
	Pods  []*corev1.Pod  `json:"pods"`
	Soft  bool           `json:"soft"`
}

// Answer names the pods that are evicted in one run, sorted.
type Answer struct {
	ID      string   `json:"id"`
	Evicted []string `json:"evicted"`
	Error   string   `json:"error,omitempty"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println(version)
		return
	}
	klog.SetLogger(klog.Background().V(0))
	klog.LogToStderr(false)
	klog.SetOutput(discard{})
	lines, out := bufio.NewReaderSize(os.Stdin, 1<<20), json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			if err := out.Encode(answer(line)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}

type discard struct{}

func (discard) Write(bytes []byte) (int, error) { return len(bytes), nil }

func answer(line []byte) Answer {
	var asked Question
	if err := json.Unmarshal(line, &asked); err != nil {
		return Answer{Error: err.Error()}
	}
	evicted, err := balance(asked)
	if err != nil {
		return Answer{ID: asked.ID, Error: err.Error()}
	}
	return Answer{ID: asked.ID, Evicted: evicted}
}

// balance runs the plugin once, with the default evictor, as the descheduler does in every interval.
func balance(asked Question) ([]string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var objects []runtime.Object
	for _, node := range asked.Nodes {
		objects = append(objects, node)
	}
	for _, pod := range asked.Pods {
		objects = append(objects, pod)
	}
	client := fake.NewSimpleClientset(objects...)
	evicted := []string{}
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		evicted = append(evicted, action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name)
		return true, nil, nil
	})
	byName := func(pods []*corev1.Pod) { sort.Slice(pods, func(i, j int) bool { return pods[i].Name < pods[j].Name }) }
	handle, _, err := frameworktesting.InitFrameworkHandle(ctx, client, nil, defaultevictor.DefaultEvictorArgs{}, byName)
	if err != nil {
		return nil, err
	}
	args := &plugin.RemovePodsViolatingTopologySpreadConstraintArgs{}
	if asked.Soft {
		args.Constraints = []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}
	}
	plugin.SetDefaults_RemovePodsViolatingTopologySpreadConstraintArgs(args)
	made, err := plugin.New(ctx, args, handle)
	if err != nil {
		return nil, err
	}
	if status := made.(frameworktypes.BalancePlugin).Balance(ctx, asked.Nodes); status != nil && status.Err != nil {
		return nil, status.Err
	}
	sort.Strings(evicted)
	return evicted, nil
}
