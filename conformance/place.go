//go:build !before137

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	kjson "sigs.k8s.io/json"
)

// World is one cluster and one workload whose pods look for a node, one after
// the other, in any order and on any node that the filters leave.
type World struct {
	ID string `json:"id"`
	Cluster
	PodTopologySpreadArgs json.RawMessage `json:"podTopologySpreadArgs,omitempty"`
	// Template is the pod of a workload whose pods are alike, as its controller
	// posts it, and Replicas how many there are to be.
	Template json.RawMessage `json:"template,omitempty"`
	Replicas int             `json:"replicas,omitempty"`
	// Ordinals are the pods of a StatefulSet, in order; Ordered says that each
	// waits for the one before it.
	Ordinals []json.RawMessage `json:"ordinals,omitempty"`
	Ordered  bool              `json:"ordered,omitempty"`
	// Own names the pods of the cluster that are the workload's, as
	// "namespace/name". Those with a node stay there; Anew takes them out first.
	Own  []string `json:"own,omitempty"`
	Anew bool     `json:"anew,omitempty"`
	// Rollout lets pods of the cluster go while those of Template come.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Terminating lets pods that are being deleted go at any time, but for those on
	// unreachable nodes; a StatefulSet's pod is then made anew. Not with Rollout.
	Terminating bool `json:"terminating,omitempty"`
	// Lose takes nodes away before anything is placed.
	Lose *Loss `json:"lose,omitempty"`
	// States bounds the search over all orders, Samples the orders that are tried
	// where it is passed; 0 means the defaults of the command.
	States  int    `json:"states,omitempty"`
	Samples int    `json:"samples,omitempty"`
	Seed    uint64 `json:"seed,omitempty"`
	// Raw says that the pods are as the scheduler got them.
	Raw bool `json:"raw,omitempty"`

	going []*corev1.Pod // those that Terminating lets go
}

// Loss says which nodes are lost, and what that means.
type Loss struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Truth is "unreachable": the nodes stay, tainted, and their pods are being
	// deleted for ever, so that StatefulSets replace none; or "gone": the nodes
	// and their pods are deleted.
	Truth string `json:"truth"`
	// After loses the nodes once all pods are placed, in each way that they can
	// be; of many ways, in some.
	After bool `json:"after,omitempty"`
}

// Rollout says which pods a Deployment's rolling update deletes, as
// "namespace/name", and how many pods there may be more and fewer meanwhile.
type Rollout struct {
	Leaving     []string `json:"leaving"`
	Surge       int      `json:"surge"`
	Unavailable int      `json:"unavailable"`
}

// mostEnds bounds the terminal states in which nodes are then lost.
const mostEnds = 40

// Placement is what the orders come to. Fewest and Most are pods of Queued that
// have a node once none of the others finds one.
type Placement struct {
	ID string `json:"id"`
	// Staying are pods of the workload that keep their node, Lost those on
	// unreachable nodes that are not replaced, Queued those that look for a node.
	Staying int `json:"staying"`
	Lost    int `json:"lost,omitempty"`
	Queued  int `json:"queued"`
	// First are the nodes on which the first of them may go at once.
	First  []string `json:"first"`
	Fewest int      `json:"fewest"`
	Most   int      `json:"most"`
	// Left are the most pods of a rollout's Leaving that stay.
	Left int `json:"left,omitempty"`
	// Pending and MostPending are the fewest and the most of Queued without one.
	Pending     int `json:"pending"`
	MostPending int `json:"mostPending"`
	// Exact says that every order was searched. Otherwise some order ends with
	// Fewest and some order with Most; others may end below and above.
	Exact  bool `json:"exact"`
	States int  `json:"states"`
	// Ends is how often the orders end with so many pods placed, if each
	// step takes any pod and any feasible node with the same probability; where
	// the search was not exact, the share of the orders that were tried.
	Ends map[int]float64 `json:"ends"`
	// Witness is an order that ends with Fewest: "pod on node".
	Witness []string `json:"witness"`
	// Message is what the scheduler says of the first pod left over there.
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
}

type placeOptions struct {
	states, samples int
}

func runPlace(args []string) error {
	fs := flag.NewFlagSet("place", flag.ExitOnError)
	var o placeOptions
	fs.IntVar(&o.states, "states", 3000, "states to search before orders are only sampled")
	fs.IntVar(&o.samples, "samples", 60, "orders to try where that is not enough")
	parallel := fs.Int("j", 1, "worlds in flight; with 1, each answer is written before the next line is read")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *parallel != 1 {
		return mapLines(os.Stdin, os.Stdout, *parallel, func(line []byte) (any, error) { return o.place(line) })
	}
	return readLines(os.Stdin, func(line []byte) error {
		p, err := o.place(line)
		if err != nil {
			return err
		}
		b, err := marshal(p)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(append(b, '\n'))
		return err
	})
}

// place decides one world. Unreadable input is an error; a world that cannot be
// run is a Placement with Error set.
func (o placeOptions) place(line []byte) (*Placement, error) {
	w := &World{States: o.states, Samples: o.samples, Seed: 1}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(line, w); err != nil {
		return nil, err
	}
	p, err := w.place()
	if err != nil {
		return &Placement{ID: w.ID, Error: err.Error()}, nil
	}
	return p, nil
}

func (w *World) place() (*Placement, error) {
	if w.Lose != nil && w.Lose.After {
		return w.placeAndLose()
	}
	p, _, err := w.placeNow()
	return p, err
}

// placeAndLose loses the nodes in every state in which the placing ends. What
// is said of pods is said of those that are placed again then.
func (w *World) placeAndLose() (*Placement, error) {
	lose := w.Lose
	lose.After, w.Lose = false, nil
	first, ends, err := w.placeNow()
	if err != nil {
		return nil, err
	}
	var all *Placement
	for _, end := range ends {
		next := *w
		next.Anew, next.Lose = false, lose
		next.Pods, next.Nodes, next.Own = nil, nil, append([]string{}, w.Own...)
		for _, pod := range append(append([]*corev1.Pod{}, w.Pods...), end...) {
			next.Pods = append(next.Pods, pod.DeepCopy())
		}
		for _, pod := range next.Pods[len(w.Pods):] {
			pod.UID = "placed-" + pod.UID
			next.Own = append(next.Own, pod.Namespace+"/"+pod.Name)
		}
		for _, node := range w.Nodes {
			next.Nodes = append(next.Nodes, node.DeepCopy())
		}
		p, _, err := next.placeNow()
		if err != nil {
			return nil, err
		}
		p.Exact = p.Exact && first.Exact && len(ends) < mostEnds
		if all == nil {
			all = p
			continue
		}
		all.Pending, all.Exact = min(all.Pending, p.Pending), all.Exact && p.Exact
		if p.MostPending > all.MostPending {
			p.Pending, p.Exact = all.Pending, all.Exact
			all = p
		}
	}
	return all, nil
}

// placeNow also returns the queued pods of the terminal states, with their
// nodes, at most mostEnds of them.
func (w *World) placeNow() (*Placement, [][]*corev1.Pod, error) {
	p := &Placement{ID: w.ID}
	queue, err := w.prepare(p)
	if err != nil {
		return nil, nil, err
	}
	leaving := w.takeLeaving()
	sim, err := newSimulator(context.Background(), &w.Cluster, w.PodTopologySpreadArgs, 1)
	if err != nil {
		return nil, nil, err
	}
	defer sim.close()
	s := newSearch(sim, w, queue)
	if err := s.hold(leaving); err != nil {
		return nil, nil, err
	}
	err = s.run(p)
	p.Pending, p.MostPending = p.Queued-p.Most, p.Queued-p.Fewest
	return p, s.ends, err
}

// goes says whether the kubelet of its node completes the deletion of a pod.
func (w *World) goes(pod *corev1.Pod) bool {
	if !w.Terminating || pod.DeletionTimestamp == nil {
		return false
	}
	at := slices.IndexFunc(w.Nodes, func(n *corev1.Node) bool { return n.Name == pod.Spec.NodeName })
	return at >= 0 && !slices.ContainsFunc(w.Nodes[at].Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}

// takeLeaving takes the pods that a rollout deletes, or that terminate, out of
// the cluster.
func (w *World) takeLeaving() []*corev1.Pod {
	if w.Rollout == nil && !w.Terminating {
		return nil
	}
	var leaving, kept []*corev1.Pod
	for _, p := range w.Pods {
		if w.goes(p) || w.Rollout != nil && slices.Contains(w.Rollout.Leaving, p.Namespace+"/"+p.Name) {
			p.UID = types.UID(fmt.Sprintf("leaving-%d", len(leaving)))
			leaving = append(leaving, p)
		} else {
			kept = append(kept, p)
		}
	}
	w.Pods = kept
	if w.Terminating {
		w.going = leaving
	}
	return leaving
}

// prepare loses the nodes, takes out the workload's own pods that go, and
// returns those that look for a node.
func (w *World) prepare(p *Placement) ([]*corev1.Pod, error) {
	lost, err := w.lose()
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, name := range w.Own {
		own[name] = true
	}
	stateful := len(w.Ordinals) > 0
	taken := map[string]bool{}
	var kept []*corev1.Pod
	for _, pod := range w.Pods {
		name := pod.Namespace + "/" + pod.Name
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		switch {
		case lost[pod.Spec.NodeName] && w.Lose.Truth == "gone":
			continue
		case lost[pod.Spec.NodeName] && evicted(pod):
			now := metav1.Unix(1, 0)
			if pod.DeletionTimestamp == nil && own[name] && stateful && !finished {
				p.Lost++
				taken[name] = true
			}
			pod.DeletionTimestamp = &now
		case !own[name]:
		case pod.Spec.NodeName == "":
			continue // it looks for a node
		case w.Anew:
			continue
		case pod.DeletionTimestamp == nil && !finished:
			p.Staying++
			taken[name] = true
		case stateful && !w.goes(pod): // its name is not free yet
			p.Lost++
			taken[name] = true
		}
		kept = append(kept, pod)
	}
	w.Pods = kept
	queue, err := w.queue(taken, w.Replicas-p.Staying)
	p.Queued = len(queue)
	return queue, err
}

// queue makes the pods that look for a node.
func (w *World) queue(taken map[string]bool, missing int) ([]*corev1.Pod, error) {
	o := verdictOptions{create: !w.Raw}
	var queue []*corev1.Pod
	add := func(raw json.RawMessage, suffix string) error {
		pod, err := o.incomingPod(raw)
		if err != nil {
			return err
		}
		pod.Name += suffix
		if suffix != "" || !taken[pod.Namespace+"/"+pod.Name] {
			pod.UID = types.UID(fmt.Sprintf("queued-%d", len(queue)))
			queue = append(queue, pod)
		}
		return nil
	}
	for _, raw := range w.Ordinals {
		if err := add(raw, ""); err != nil {
			return nil, err
		}
	}
	if len(w.Template) == 0 {
		return queue, nil
	}
	if len(w.Ordinals) > 0 {
		return nil, errors.New("a template or ordinals, not both")
	}
	for i := range max(missing, 0) {
		if err := add(w.Template, fmt.Sprintf("#%d", i)); err != nil {
			return nil, err
		}
	}
	return queue, nil
}

// lose removes or taints the lost nodes and returns their names.
func (w *World) lose() (map[string]bool, error) {
	lost := map[string]bool{}
	if w.Lose == nil {
		return lost, nil
	}
	var kept []*corev1.Node
	for _, n := range w.Nodes {
		if value, ok := n.Labels[w.Lose.Key]; !ok || value != w.Lose.Value {
			kept = append(kept, n)
			continue
		}
		lost[n.Name] = true
		switch w.Lose.Truth {
		case "gone":
			continue
		case "unreachable":
			for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
				taint := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: effect}
				n.Spec.Taints = append(n.Spec.Taints, taint)
			}
			kept = append(kept, n)
		default:
			return nil, fmt.Errorf("truth %q: want unreachable or gone", w.Lose.Truth)
		}
	}
	w.Nodes = kept
	return lost, nil
}

// evicted says whether a pod on an unreachable node is deleted sooner or later.
func evicted(pod *corev1.Pod) bool {
	for _, t := range pod.Spec.Tolerations {
		matches := t.Key == corev1.TaintNodeUnreachable || (t.Key == "" && t.Operator == corev1.TolerationOpExists)
		effect := t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute
		if matches && effect && t.TolerationSeconds == nil && (t.Operator == corev1.TolerationOpExists || t.Value == "") {
			return false
		}
	}
	return true
}

// feasible asks the scheduler's PreFilter and Filter plugins where the pod may
// go now, of the nodes named.
func (s *simulator) feasible(pod *corev1.Pod, names []string) ([]bool, error) {
	ctx := context.Background()
	state := framework.NewCycleState()
	out := make([]bool, len(names))
	pre, status, _ := s.framework.RunPreFilterPlugins(ctx, state, pod)
	if status.IsRejected() {
		return out, nil
	}
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	for i, name := range names {
		if !pre.AllNodes() && !pre.NodeNames.Has(name) {
			continue
		}
		info, err := s.snapshot.Get(name)
		if err != nil {
			return nil, err
		}
		found := s.framework.RunFilterPlugins(ctx, state, pod, info)
		if found.Code() == fwk.Error {
			return nil, found.AsError()
		}
		out[i] = found.IsSuccess()
	}
	return out, nil
}

// blanked is the JSON of an object without what only tells it from others.
func blanked(v any, drop ...string) string {
	b, _ := json.Marshal(v)
	text := string(b)
	for _, d := range drop {
		if d != "" {
			quoted, _ := json.Marshal(d)
			text = strings.ReplaceAll(text, string(quoted), `"*"`)
		}
	}
	return text
}
