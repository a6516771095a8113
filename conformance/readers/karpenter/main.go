// karpenter answers where Karpenter's own scheduling simulation would put pods: JSON Lines in, JSON Lines out.
//
// Nothing here re-implements Karpenter: the program builds its inputs, calls its code and writes down what it says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	requirements "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

const (
	version  = "v1.15.0"
	nodePool = "default"
)

// Question is a cluster, and pods that are alike and look for a node. Zones are those in which its one NodePool can make
// nodes of any size; without them there is none.
type Question struct {
	ID       string         `json:"id"`
	Nodes    []*corev1.Node `json:"nodes"`
	Pods     []*corev1.Pod  `json:"pods"`
	Pod      *corev1.Pod    `json:"pod"`
	Replicas int            `json:"replicas"`
	Zones    []string       `json:"zones"`
}

// Answer says which nodes of today take the first pod: as it is, with every preference as a requirement, and once Karpenter
// has given up as many of them as it takes to find a node. Solved is where all pods come to, with the NodePool.
type Answer struct {
	ID      string   `json:"id"`
	First   []string `json:"first"`
	Relaxed []string `json:"relaxed"`
	Solved  *Solved  `json:"solved,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Solved counts pods by node of today, those on new nodes, these nodes, and the pods without any.
type Solved struct {
	Nodes   map[string]int `json:"nodes"`
	New     int            `json:"new"`
	OnNew   int            `json:"onNew"`
	Pending int            `json:"pending"`
}

type quiet struct{}

func (quiet) Publish(...events.Event) {}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println(version)
		return
	}
	log.SetLogger(logr.Discard())
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

func answer(line []byte) (told Answer) {
	var asked Question
	defer func() {
		// Karpenter dereferences what kube-apiserver always fills in.
		if fault := recover(); fault != nil {
			told = Answer{ID: asked.ID, Error: fmt.Sprint(fault)}
		}
	}()
	if err := json.Unmarshal(line, &asked); err != nil {
		return Answer{Error: err.Error()}
	}
	first, relaxed, err := takers(asked)
	if err != nil {
		return Answer{ID: asked.ID, Error: err.Error()}
	}
	solved, err := solve(asked)
	if err != nil {
		return Answer{ID: asked.ID, Error: err.Error()}
	}
	return Answer{ID: asked.ID, First: first, Relaxed: relaxed, Solved: solved}
}

// world is the cluster as Karpenter keeps it.
type world struct {
	ctx     context.Context
	client  client.Client
	cluster *state.Cluster
	nodes   []*state.StateNode
}

func newWorld(asked Question) (*world, error) {
	builder := fake.NewClientBuilder().WithScheme(clientscheme.Scheme)
	builder = builder.WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
		return []string{o.(*corev1.Pod).Spec.NodeName}
	})
	for i, pod := range asked.Pods {
		pod = pod.DeepCopy()
		if pod.UID == "" {
			pod.UID = types.UID(fmt.Sprintf("there-%d", i))
		}
		if pod.DeletionTimestamp != nil {
			// The fake client holds objects that are being deleted only for somebody's sake.
			pod.Finalizers = append(pod.Finalizers, "evenspread.io/kept")
		}
		builder = builder.WithObjects(pod)
	}
	for _, node := range asked.Nodes {
		builder = builder.WithObjects(node.DeepCopy())
	}
	ctx := injection.WithControllerName(context.Background(), "provisioner")
	made := &world{ctx: options.ToContext(ctx, &options.Options{}), client: builder.Build()}
	made.cluster = state.NewCluster(clock.RealClock{}, made.client, nil)
	for _, node := range asked.Nodes {
		node = node.DeepCopy()
		node.Spec.ProviderID = "fake:///" + node.Name
		if err := made.cluster.UpdateNode(made.ctx, node); err != nil {
			return nil, err
		}
	}
	made.nodes = made.cluster.DeepCopyNodes()
	sort.Slice(made.nodes, func(i, j int) bool { return made.nodes[i].Name() < made.nodes[j].Name() })
	return made, nil
}

func copies(asked Question, many int) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range many {
		pod := asked.Pod.DeepCopy()
		pod.Name, pod.UID = fmt.Sprintf("asked-%d", i), types.UID(fmt.Sprintf("asked-%d", i))
		pod.Status.Phase = corev1.PodPending
		pods = append(pods, pod)
	}
	return pods
}

// takers asks each node of today whether it takes the pod; the order is Scheduler.trySchedule's.
func takers(asked Question) (first, relaxed []string, err error) {
	w, err := newWorld(asked)
	if err != nil {
		return nil, nil, err
	}
	pod := copies(asked, 1)[0]
	topology, err := scheduling.NewTopology(w.ctx, w.client, w.cluster, w.nodes, nil, nil, []*corev1.Pod{pod})
	if err != nil {
		return nil, nil, err
	}
	var nodes []*scheduling.ExistingNode
	for _, node := range w.nodes {
		nodes = append(nodes, scheduling.NewExistingNode(node, topology, node.Taints(), corev1.ResourceList{}, nil, false))
	}
	preferences := &scheduling.Preferences{}
	for round := 0; ; round++ {
		data := dataOf(pod)
		taking := []string{}
		for _, node := range nodes {
			if _, _, err := node.CanAdd(w.ctx, pod, data, nil, nil); err == nil {
				taking = append(taking, node.Name())
			}
		}
		if round == 0 {
			first = taking
		}
		if len(taking) > 0 || !preferences.Relax(w.ctx, pod) {
			return first, taking, nil
		}
		if err := topology.Update(w.ctx, pod); err != nil {
			return nil, nil, err
		}
	}
}

// dataOf is Scheduler.updateCachedPodData.
func dataOf(pod *corev1.Pod) *scheduling.PodData {
	all := requirements.NewPodRequirements(pod)
	strict := all
	if requirements.HasPreferredNodeAffinity(pod) {
		strict = requirements.NewStrictPodRequirements(pod)
	}
	return &scheduling.PodData{Requests: resources.RequestsForPods(pod), Requirements: all, StrictRequirements: strict}
}

// solve asks Karpenter's scheduler where all pods go.
func solve(asked Question) (*Solved, error) {
	w, err := newWorld(asked)
	if err != nil {
		return nil, err
	}
	pods := copies(asked, max(asked.Replicas, 1))
	pools, instances := capacity(asked.Zones)
	topology, err := scheduling.NewTopology(w.ctx, w.client, w.cluster, w.nodes, pools, instances, pods)
	if err != nil {
		return nil, err
	}
	scheduler := scheduling.NewScheduler(w.ctx, w.client, pools, w.cluster, w.nodes, topology, instances, nil, quiet{}, clock.RealClock{}, nil, nil)
	results, err := scheduler.Solve(w.ctx, pods)
	if err != nil {
		return nil, err
	}
	solved := &Solved{Nodes: map[string]int{}, New: len(results.NewNodeClaims), Pending: len(results.PodErrors)}
	for _, node := range results.ExistingNodes {
		if len(node.Pods) > 0 {
			solved.Nodes[node.Name()] = len(node.Pods)
		}
	}
	for _, claim := range results.NewNodeClaims {
		solved.OnNew += len(claim.Pods)
	}
	return solved, nil
}

// capacity is one NodePool with one type of instance that is large enough for everything, in these zones.
func capacity(zones []string) ([]*v1.NodePool, map[string][]*cloudprovider.InstanceType) {
	if len(zones) == 0 {
		return nil, nil
	}
	pool := &v1.NodePool{}
	pool.Name = nodePool
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "evenspread.io", Kind: "NodeClass", Name: "default"}
	instance := &cloudprovider.InstanceType{
		Name: "large",
		Requirements: requirements.NewRequirements(
			requirements.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "large"),
			requirements.NewRequirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64"),
			requirements.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"),
			requirements.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...),
			requirements.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, v1.CapacityTypeOnDemand),
		),
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("64"),
			corev1.ResourceMemory: resource.MustParse("256Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		},
		Overhead: &cloudprovider.InstanceTypeOverhead{},
	}
	for _, zone := range zones {
		labels := map[string]string{v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand, corev1.LabelTopologyZone: zone}
		instance.Offerings = append(instance.Offerings, &cloudprovider.Offering{
			Requirements: requirements.NewLabelRequirements(labels), Price: 1, Available: true,
		})
	}
	return []*v1.NodePool{pool}, map[string][]*cloudprovider.InstanceType{nodePool: {instance}}
}
