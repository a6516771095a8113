package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
)

// What a webhook of this kind must read; the rules are fewer than evenspread's, to the peer's advantage.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    struct {
		UID       string          `json:"uid"`
		Operation string          `json:"operation"`
		Namespace string          `json:"namespace"`
		Name      string          `json:"name"`
		DryRun    bool            `json:"dryRun"`
		Object    json.RawMessage `json:"object"`
		Kind      struct {
			Group, Version, Kind string
		} `json:"kind"`
	} `json:"request"`
}

type selector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"matchExpressions"`
}

type workload struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int32    `json:"replicas"`
		Selector *selector `json:"selector"`
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				NodeSelector map[string]string `json:"nodeSelector"`
				Constraints  []struct {
					MaxSkew           int32     `json:"maxSkew"`
					TopologyKey       string    `json:"topologyKey"`
					WhenUnsatisfiable string    `json:"whenUnsatisfiable"`
					LabelSelector     *selector `json:"labelSelector"`
					MinDomains        *int32    `json:"minDomains"`
					MatchLabelKeys    []string  `json:"matchLabelKeys"`
				} `json:"topologySpreadConstraints"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type status struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type response struct {
	UID      string   `json:"uid"`
	Allowed  bool     `json:"allowed"`
	Status   *status  `json:"status,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

type answer struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

const limit = 7 << 20

func validate(writer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, limit))
	if err != nil {
		http.Error(writer, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	var asked review
	if err := json.Unmarshal(body, &asked); err != nil || asked.Kind != "AdmissionReview" {
		http.Error(writer, "no AdmissionReview", http.StatusBadRequest)
		return
	}
	reply := answer{asked.APIVersion, asked.Kind, judge(asked)}
	text, err := json.Marshal(reply)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_, _ = writer.Write(text)
}

// empty allows everything, and reads no more than the uid: the least that a webhook does.
func empty(writer http.ResponseWriter, request *http.Request) {
	var asked struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	reply := answer{asked.APIVersion, asked.Kind, response{UID: asked.Request.UID, Allowed: true}}
	_ = json.NewEncoder(writer).Encode(reply)
}

func judge(asked review) response {
	reply := response{UID: asked.Request.UID, Allowed: true}
	var object workload
	if err := json.Unmarshal(asked.Request.Object, &object); err != nil {
		reply.Allowed, reply.Status = false, &status{403, "Forbidden", err.Error()}
		return reply
	}
	for index, constraint := range object.Spec.Template.Spec.Constraints {
		path := fmt.Sprintf("spec.template.spec.topologySpreadConstraints[%d]", index)
		if constraint.MaxSkew <= 0 {
			reply.Allowed = false
			reply.Status = &status{403, "Forbidden", path + ".maxSkew: Invalid value: must be greater than zero"}
		}
		if constraint.LabelSelector != nil {
			for key, value := range constraint.LabelSelector.MatchLabels {
				if object.Spec.Template.Metadata.Labels[key] != value {
					reply.Warnings = append(reply.Warnings, path+": the pods do not match their own selector")
				}
			}
		}
	}
	return reply
}

func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	cert := flags.String("cert", "", "certificate")
	key := flags.String("key", "", "key")
	listen := flags.String("listen", "127.0.0.1:0", "address")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /validate", validate)
	mux.HandleFunc("POST /empty/validate", empty)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: mux, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	return server.ServeTLS(listener, *cert, *key)
}
