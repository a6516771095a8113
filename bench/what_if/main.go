// Kubernetes' own what-if library beside ours: sigs.k8s.io/scheduler-library places the replicas of one workload, one
// greedy order.
//
//	what-if CLUSTER.json REPLICAS
//
// The file is what `oracle bench --dump` writes; its first incoming pod is the template. Prints how many pods were
// placed and in how many seconds.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"sigs.k8s.io/scheduler-library/pkg/framework"
	"sigs.k8s.io/scheduler-library/pkg/upstreamsync/snapshot"
)

type cluster struct {
	Nodes    []*corev1.Node `json:"nodes"`
	Pods     []*corev1.Pod  `json:"pods"`
	Incoming []*corev1.Pod  `json:"incoming"`
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "what-if: "+err.Error())
		os.Exit(1)
	}
}

func run(file, replicas string) error {
	count, err := strconv.Atoi(replicas)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c cluster
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := c.snapshot(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, node := range c.Nodes {
		names = append(names, node.Name)
	}
	placement, err := s.MakePlacement(names)
	if err != nil {
		return err
	}
	pod := c.Incoming[0]
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	template := &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	began := time.Now()
	found, err := s.SchedulePodsByTemplate(ctx, template, placement, count, snapshot.NewSchedulePodsByTemplateOptions(true))
	if err != nil {
		return err
	}
	took, placed := time.Since(began).Seconds(), 0
	for _, each := range found {
		if each.Status.IsSuccess() {
			placed++
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"placed": placed, "seconds": took})
}

func (c *cluster) snapshot(ctx context.Context) (*snapshot.ClusterSnapshot, error) {
	framework.InitMetricsOnce()
	config, err := latest.Default()
	if err != nil {
		return nil, err
	}
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	held := cache.NewSnapshot(c.Pods, c.Nodes)
	profiles, err := framework.NewProfileMap(ctx, client, factory, held, config)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return snapshot.New(held, profiles), nil
}
