// Command removals runs the code with which controllers choose the pods that they remove, on cases given as JSON Lines.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strings"
	"time"
	_ "unsafe" // go:linkname

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	_ "k8s.io/kubernetes/pkg/controller/job"
	_ "k8s.io/kubernetes/pkg/controller/replicaset"
	_ "k8s.io/kubernetes/pkg/controller/statefulset"
)

//go:linkname podsToDelete k8s.io/kubernetes/pkg/controller/replicaset.getPodsToDelete
func podsToDelete(filteredPods, relatedPods []*corev1.Pod, diff int) []*corev1.Pod

//go:linkname rankedPods k8s.io/kubernetes/pkg/controller/replicaset.getPodsRankedByRelatedPodsOnSameNode
func rankedPods(podsToRank, relatedPods []*corev1.Pod) controller.ActivePodsWithRanks

//go:linkname podsOfJob k8s.io/kubernetes/pkg/controller/job.activePodsForRemoval
func podsOfJob(job *batchv1.Job, pods []*corev1.Pod, rmAtLeast int) []*corev1.Pod

//go:linkname ordinalOf k8s.io/kubernetes/pkg/controller/statefulset.getOrdinal
func ordinalOf(pod *corev1.Pod) int

// Removal is a controller's pods, of which it removes some.
type Removal struct {
	ID  string      `json:"id"`
	Now metav1.Time `json:"now"`
	// Pods are the controller's, each with a name of its own; Related those of all
	// ReplicaSets with the same owner.
	Pods    []*corev1.Pod `json:"pods"`
	Related []*corev1.Pod `json:"related,omitempty"`
	// Tries are the random UIDs and orders of Pods in which they are removed; 0
	// tries all, -1 none.
	Tries int    `json:"tries,omitempty"`
	Seed  uint64 `json:"seed,omitempty"`
}

// Removed is what the controllers make of them.
type Removed struct {
	ID     string   `json:"id"`
	Active []string `json:"active"`
	// Less has for each active pod those that come after it, by their UIDs.
	Less     map[string][]string `json:"less"`
	Ordinals map[string]int      `json:"ordinals"`
	// ReplicaSet and Job have the sets of pods that were removed in any try.
	ReplicaSet []string `json:"replicaSet"`
	Job        []string `json:"job"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "removals:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	w := bufio.NewWriter(out)
	cases, answers := json.NewDecoder(in), json.NewEncoder(w)
	for {
		var r Removal
		if err := cases.Decode(&r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(r.removed()); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

func (r Removal) removed() Removed {
	active := controller.FilterActivePods(klog.Background(), r.Pods)
	out := Removed{ID: r.ID, Active: namesOf(active), Less: map[string][]string{}, Ordinals: map[string]int{}}
	for _, p := range r.Pods {
		out.Ordinals[p.Name] = ordinalOf(p)
	}
	ranked := rankedPods(active, r.Related)
	ranked.Now = r.Now
	for i, p := range active {
		after := []string{}
		for j, q := range active {
			if ranked.Less(i, j) {
				after = append(after, q.Name)
			}
		}
		out.Less[p.Name] = after
	}
	job, moved := &batchv1.Job{}, time.Duration(0)
	ofReplicaSet, ofJob := map[string]bool{}, map[string]bool{}
	r.eachTry(active, func(pods []*corev1.Pod, n int) {
		// The controller reads the clock, so the times move along with it.
		by := time.Since(r.Now.Time) - moved
		moved += by
		for _, p := range pods {
			move(&p.CreationTimestamp, by)
			for i := range p.Status.Conditions {
				move(&p.Status.Conditions[i].LastTransitionTime, by)
			}
		}
		ofReplicaSet[setOf(podsToDelete(slices.Clone(pods), r.Related, n))] = true
		ofJob[setOf(podsOfJob(job, slices.Clone(pods), n))] = true
	})
	out.ReplicaSet, out.Job = sorted(ofReplicaSet), sorted(ofJob)
	return out
}

// eachTry calls f with the pods in some order, with some UIDs, and the number to remove: with all, or Tries random ones.
func (r Removal) eachTry(pods []*corev1.Pod, f func([]*corev1.Pod, int)) {
	if len(pods) < 2 {
		return
	}
	in := make([]*corev1.Pod, len(pods))
	try := func(uids, order []int, n int) {
		for i, p := range pods {
			p.UID = types.UID(rune('a' + uids[i]))
			in[order[i]] = p
		}
		f(in, n)
	}
	if r.Tries != 0 {
		g := rand.New(rand.NewPCG(r.Seed, 0))
		for range max(r.Tries, 0) {
			try(g.Perm(len(pods)), g.Perm(len(pods)), 1+g.IntN(len(pods)-1))
		}
		return
	}
	all := permutations(len(pods))
	for _, uids := range all {
		for _, order := range all {
			for n := 1; n < len(pods); n++ {
				try(uids, order, n)
			}
		}
	}
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var out [][]int
	for _, p := range permutations(n - 1) {
		for i := range n {
			out = append(out, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return out
}

func move(t *metav1.Time, by time.Duration) {
	if !t.IsZero() {
		t.Time = t.Add(by)
	}
}

func namesOf(pods []*corev1.Pod) []string {
	out := []string{}
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

func setOf(pods []*corev1.Pod) string {
	names := namesOf(pods)
	sort.Strings(names)
	return strings.Join(names, " ")
}

func sorted(sets map[string]bool) []string {
	out := []string{}
	for s := range sets {
		out = append(out, s)
	}
	sort.Strings(out)
	return out
}
