// The oracle answers what a real API server's field manager makes of a history of writes to one custom resource.
// It reads one history a line and writes its outcomes, one line each.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const group, kind = "example.com", "Widget"

type history struct {
	Models map[string]*spec.Schema `json:"models"` // by version
	Writes []write                 `json:"writes"`
}

type write struct {
	Do          string                     `json:"do"` // apply or update
	Version     string                     `json:"version"`
	Manager     string                     `json:"manager"`
	Subresource string                     `json:"subresource"`
	Force       bool                       `json:"force"`
	Reset       json.RawMessage            `json:"reset"` // FieldsV1
	Object      *unstructured.Unstructured `json:"object"`
	Models      map[string]*spec.Schema    `json:"models"` // the schemas from this write on, where they change
}

type outcome struct {
	Error     string                 `json:"error,omitempty"`
	Conflicts []string               `json:"conflicts,omitempty"`
	Object    map[string]interface{} `json:"object,omitempty"`
}

// versions converts between versions that differ in name only, and creates empty objects.
type versions map[string]*spec.Schema

func (v versions) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	made := &unstructured.Unstructured{Object: map[string]interface{}{}}
	made.SetGroupVersionKind(gvk)
	return made, nil
}

func (v versions) Convert(_, _, _ interface{}) error { return errors.New("not used") }

func (v versions) ConvertFieldLabel(_ schema.GroupVersionKind, _, _ string) (string, string, error) {
	return "", "", errors.New("not used")
}

func (v versions) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	target := to.(schema.GroupVersion)
	if _, served := v[target.Version]; !served || target.Group != group {
		return nil, runtime.NewNotRegisteredErrForKind("oracle", target.WithKind(kind))
	}
	made := in.DeepCopyObject().(*unstructured.Unstructured)
	made.SetGroupVersionKind(target.WithKind(kind))
	return made, nil
}

func (v versions) Default(runtime.Object) {}

func typed(models map[string]*spec.Schema) (managedfields.TypeConverter, error) {
	for version, model := range models {
		model.AddExtension("x-kubernetes-group-version-kind", []interface{}{
			map[string]interface{}{"group": group, "version": version, "kind": kind},
		})
	}
	return managedfields.NewTypeConverter(models, false)
}

func play(h history) ([]outcome, error) {
	converter, err := typed(h.Models)
	if err != nil {
		return nil, err
	}
	served := versions(h.Models)
	var live runtime.Object
	outcomes := []outcome{}
	for _, w := range h.Writes {
		if w.Models != nil {
			if converter, err = typed(w.Models); err != nil {
				return nil, err
			}
			served = versions(w.Models)
		}
		gvk := schema.GroupVersionKind{Group: group, Version: w.Version, Kind: kind}
		var filters map[fieldpath.APIVersion]fieldpath.Filter
		if w.Reset != nil {
			set := &fieldpath.Set{}
			if err := set.FromJSON(bytes.NewReader(w.Reset)); err != nil {
				return nil, err
			}
			filters = map[fieldpath.APIVersion]fieldpath.Filter{}
			for version := range served {
				filters[fieldpath.APIVersion(group+"/"+version)] = fieldpath.NewExcludeSetFilter(set)
			}
		}
		manager, err := managedfields.NewDefaultCRDFieldManager(converter, served, served, served, gvk,
			schema.GroupVersion{Group: group, Version: "v1"}, w.Subresource, filters)
		if err != nil {
			return nil, err
		}
		before, _ := served.New(gvk)
		if live != nil {
			if before, err = served.ConvertToVersion(live, gvk.GroupVersion()); err != nil {
				return nil, err
			}
		}
		var after runtime.Object
		if w.Do == "apply" {
			after, err = manager.Apply(before, w.Object, w.Manager, w.Force)
		} else {
			after = manager.UpdateNoErrors(before, w.Object, w.Manager)
		}
		var status *apierrors.StatusError
		if errors.As(err, &status) && status.ErrStatus.Details != nil {
			out := outcome{Error: status.ErrStatus.Message}
			for _, cause := range status.ErrStatus.Details.Causes {
				out.Conflicts = append(out.Conflicts, cause.Message+": "+cause.Field)
			}
			outcomes = append(outcomes, out)
			continue
		}
		if err != nil {
			outcomes = append(outcomes, outcome{Error: err.Error()})
			continue
		}
		stored := after.(*unstructured.Unstructured)
		stored.SetUID("u")
		live = stored
		outcomes = append(outcomes, outcome{Object: stored.DeepCopy().Object})
	}
	return outcomes, nil
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		h := history{}
		if err := json.Unmarshal(line, &h); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		outcomes, err := play(h)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := out.Encode(outcomes); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
