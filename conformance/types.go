package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// roots are the types that clients post; printTypes follows their fields.
var roots = []any{
	corev1.Pod{}, corev1.PodTemplate{}, corev1.ReplicationController{}, appsv1.Deployment{}, appsv1.StatefulSet{}, appsv1.DaemonSet{},
	appsv1.ReplicaSet{}, batchv1.Job{}, batchv1.CronJob{}, configv1.PodTopologySpreadArgs{},
}

// opaque are the types that decode themselves.
var opaque = map[string]bool{"v1.Time": true, "v1.MicroTime": true, "resource.Quantity": true, "intstr.IntOrString": true, "v1.FieldsV1": true}

// printTypes writes what the JSON decoder of Kubernetes knows of every type
// below roots, one line a type: "v1.Name = underlying" for a named scalar, map
// or list, "v1.Name { field:type … }" for a struct. A field that comes from an
// embedded struct is written Embedded/field, because an error names it so.
func printTypes([]string) error {
	lines := map[string]string{}
	for _, r := range roots {
		if err := describe(reflect.TypeOf(r), lines); err != nil {
			return err
		}
	}
	names := make([]string, 0, len(lines))
	for name := range lines {
		names = append(names, name)
	}
	sort.Strings(names)
	w := bufio.NewWriter(os.Stdout)
	for _, name := range names {
		fmt.Fprintln(w, lines[name])
	}
	return w.Flush()
}

func describe(t reflect.Type, lines map[string]string) error {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		if t.Name() == "" {
			return describe(t.Elem(), lines)
		}
	case reflect.Map:
		if err := describe(t.Key(), lines); err != nil {
			return err
		}
		if t.Name() == "" {
			return describe(t.Elem(), lines)
		}
	}
	name := t.String()
	if t.PkgPath() == "" || opaque[name] {
		return nil // a basic type, or one that decodes itself
	}
	old, seen := lines[name]
	if t.Kind() != reflect.Struct {
		under := reflect.Zero(t).Kind().String()
		switch t.Kind() {
		case reflect.Map:
			under = fmt.Sprintf("map[%s]%s", t.Key(), t.Elem())
		case reflect.Slice:
			under = fmt.Sprintf("[]%s", t.Elem())
		}
		line := name + " = " + under
		if seen && old != line {
			return fmt.Errorf("two types are called %s", name)
		}
		lines[name] = line
		if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
			return describe(t.Elem(), lines)
		}
		return nil
	}
	var fields []string
	var children []reflect.Type
	if err := fieldsOf(t, "", &fields, &children); err != nil {
		return err
	}
	line := name + " { " + strings.Join(fields, " ") + " }"
	if seen {
		if old != line {
			return fmt.Errorf("two types are called %s", name)
		}
		return nil
	}
	lines[name] = line
	for _, c := range children {
		if err := describe(c, lines); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf collects the fields of a struct and of the structs that it embeds
// inline, as encoding/json sees them.
func fieldsOf(t reflect.Type, prefix string, fields *[]string, children *[]reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && tag == "" {
			if f.Type.Kind() != reflect.Struct {
				return fmt.Errorf("%s embeds %s", t, f.Type)
			}
			if err := fieldsOf(f.Type, prefix+f.Name+"/", fields, children); err != nil {
				return err
			}
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		*fields = append(*fields, prefix+tag+":"+strings.ReplaceAll(f.Type.String(), " ", ""))
		*children = append(*children, f.Type)
	}
	return nil
}
