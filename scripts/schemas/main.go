// Command schemas prints the schemas of the built-in kinds as compact JSON: the JSON and protobuf tags of the Go types,
// the merge types and defaults of the API server's typed merge, and the discovery of a running server. It leaves out
// descriptions.
//
// Usage: schemas [-server URL -token T] > builtin.json
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// field is one JSON field. Its keys are short because the file has thousands of fields.
type field struct {
	Name     string   `json:"n,omitempty"`  // JSON name; empty for an inlined struct
	Type     string   `json:"t"`            // see typeName
	Omit     string   `json:"o,omitempty"`  // e: omitempty, z: omitzero
	Strategy string   `json:"ps,omitempty"` // patchStrategy
	MergeKey string   `json:"mk,omitempty"` // patchMergeKey
	Proto    string   `json:"p,omitempty"`  // wire type and field number
	Go       string   `json:"g,omitempty"`  // Go name, if it is not the capitalised JSON name
	ListType string   `json:"l,omitempty"`  // set or map; otherwise atomic
	Keys     []string `json:"k,omitempty"`  // of a map list
	Atomic   *bool    `json:"a,omitempty"`  // whether this field's map or struct is atomic, if that differs from its type
	Default  any      `json:"d,omitempty"`  // the schema's default
}

type goType struct {
	Go     string  `json:"g,omitempty"` // Go name, if it is not the last two words of the key
	Atomic bool    `json:"a,omitempty"`
	Fields []field `json:"f"`
}

type table struct {
	Notice string             `json:"notice"`
	Kinds  map[string]any     `json:"kinds"` // discovery by group/version, in the server's order
	Roots  map[string]string  `json:"roots"` // group/version/kind -> type
	Types  map[string]*goType `json:"types"`
	Groups []map[string]any   `json:"groups"` // group order and preferred versions
	merge  map[string]smd.TypeDef
	model  func(reflect.Type) string
}

var leaves = map[string]string{
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "Quantity",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "Time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "MicroTime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                         "Duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "FieldsV1",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "IntOrString",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "Raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "Raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "SchemaOrBool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "SchemaOrArray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "SchemaOrStrings",
}

// typeName returns the name of a Go type: a scalar, `*T`, `[]T`, `{}T` (a map by string), `bytes` or a key of types. A
// named scalar is `kind:package.Name`, because decoding errors name it.
func (t *table) typeName(r reflect.Type) string {
	if leaf, ok := leaves[r.PkgPath()+"."+r.Name()]; ok {
		return leaf
	}
	named := func(kind string) string {
		if r.PkgPath() == "" {
			return kind
		}
		return kind + ":" + r.String()
	}
	switch r.Kind() {
	case reflect.Pointer:
		return "*" + t.typeName(r.Elem())
	case reflect.Slice:
		if r.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if r.PkgPath() != "" {
			return "[]" + t.typeName(r.Elem()) + "=" + r.String()
		}
		return "[]" + t.typeName(r.Elem())
	case reflect.Map:
		key := ""
		if r.Key().PkgPath() != "" {
			key = r.Key().String()
		}
		suffix := ""
		if r.PkgPath() != "" {
			suffix = "=" + r.String()
		}
		return "{" + key + "}" + t.typeName(r.Elem()) + suffix
	case reflect.Struct:
		name := t.model(r)
		t.add(name, r)
		return name
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64, reflect.Int, reflect.Uint8:
		return named(r.Kind().String())
	}
	log.Fatalf("no name for %v", r)
	return ""
}

func (t *table) add(name string, r reflect.Type) {
	if t.Types[name] != nil {
		return
	}
	made := &goType{Fields: []field{}}
	if words := strings.Split(name, "."); strings.Join(words[len(words)-2:], ".") != r.String() {
		made.Go = r.String()
	}
	t.Types[name] = made
	merge := t.merge[name]
	if merge.Map != nil {
		made.Atomic = merge.Map.ElementRelationship == smd.Atomic
	}
	for i := 0; i < r.NumField(); i++ {
		f := r.Field(i)
		tag, ok := f.Tag.Lookup("json")
		parts := strings.Split(tag, ",")
		if !ok || parts[0] == "-" || !f.IsExported() {
			continue
		}
		out := field{Name: parts[0], Type: t.typeName(f.Type)}
		for _, option := range parts[1:] {
			switch option {
			case "omitempty":
				out.Omit += "e"
			case "omitzero":
				out.Omit += "z"
			}
		}
		out.Strategy, out.MergeKey = f.Tag.Get("patchStrategy"), f.Tag.Get("patchMergeKey")
		if p := strings.Split(f.Tag.Get("protobuf"), ","); len(p) > 2 {
			out.Proto = p[0] + "," + p[1]
			if out.Name != "" && strings.ToUpper(out.Name[:1])+out.Name[1:] != f.Name {
				out.Go = f.Name
			}
		}
		if out.Name == "" && !f.Anonymous {
			out.Name = f.Name
		}
		if out.Name != "" && merge.Map != nil {
			t.mergeFacts(&out, merge.Map)
		}
		made.Fields = append(made.Fields, out)
	}
}

func (t *table) mergeFacts(out *field, m *smd.Map) {
	for _, f := range m.Fields {
		if f.Name != out.Name {
			continue
		}
		if f.Default != nil {
			out.Default = f.Default
		}
		if f.Type.ElementRelationship != nil {
			whole := *f.Type.ElementRelationship == smd.Atomic
			out.Atomic = &whole
		}
		if list := f.Type.Inlined.List; list != nil && list.ElementRelationship == smd.Associative {
			out.ListType, out.Keys = "set", list.Keys
			if len(list.Keys) > 0 {
				out.ListType = "map"
			}
		}
		if inner := f.Type.Inlined.Map; inner != nil && inner.ElementRelationship == smd.Atomic {
			whole := true
			out.Atomic = &whole
		}
	}
}

func main() {
	server := flag.String("server", "", "a running kube-apiserver to read discovery from")
	token := flag.String("token", "", "its bearer token")
	flag.Parse()
	log.SetFlags(0)

	models := map[string]*spec.Schema{}
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) }
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		s := definition.Schema
		models[name] = &s
	}
	converted, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	if err != nil {
		log.Fatal(err)
	}
	t := &table{
		Notice: "Extracted from the Go types and generated OpenAPI of k8s.io/kubernetes v1.36.4 and k8s.io/{api,apimachinery,apiextensions-apiserver,kube-aggregator} v0.36.4, Apache-2.0; facts only.",
		Kinds:  map[string]any{}, Roots: map[string]string{}, Types: map[string]*goType{}, merge: map[string]smd.TypeDef{},
		model: func(r reflect.Type) string {
			named, ok := reflect.New(r).Interface().(interface{ OpenAPIModelName() string })
			if !ok {
				return r.String()
			}
			name := named.OpenAPIModelName()
			return name
		},
	}
	for _, def := range converted.Types {
		t.merge[def.Name] = def
	}
	must(apiextensions.AddToScheme(scheme.Scheme))
	must(apiregistration.AddToScheme(scheme.Scheme))
	t.discover(*server, *token)
	t.add("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", reflect.TypeOf(metav1.DeleteOptions{}))
	t.shorten()

	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	must(encoder.Encode(t))
	_, err = os.Stdout.Write(out.Bytes())
	must(err)
}

// discover reads the served group-versions and pulls in the type of every kind they name.
func (t *table) discover(server, token string) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	get := func(path string, into any) {
		request, err := http.NewRequest("GET", server+path, nil)
		must(err)
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Accept", "application/json")
		answer, err := client.Do(request)
		must(err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		must(err)
		if answer.StatusCode != 200 {
			log.Fatalf("%s: %s", path, body)
		}
		must(json.Unmarshal(body, into))
	}
	var groups metav1.APIGroupList
	get("/apis", &groups)
	served := []schema.GroupVersion{{Version: "v1"}}
	for _, g := range groups.Groups {
		versions := []string{}
		for _, v := range g.Versions {
			versions = append(versions, v.Version)
			served = append(served, schema.GroupVersion{Group: g.Name, Version: v.Version})
		}
		known := false
		for _, v := range versions {
			known = known || len(scheme.Scheme.KnownTypes(schema.GroupVersion{Group: g.Name, Version: v})) > 0
		}
		if known {
			t.Groups = append(t.Groups, map[string]any{"name": g.Name, "versions": versions})
		}
	}
	for _, gv := range served {
		if len(scheme.Scheme.KnownTypes(gv)) == 0 {
			continue // a CRD of this server
		}
		path := "/apis/" + gv.String()
		if gv.Group == "" {
			path = "/api/" + gv.Version
		}
		var list struct {
			Resources []map[string]any `json:"resources"`
		}
		get(path, &list)
		t.Kinds[gv.String()] = list.Resources
		for _, r := range list.Resources {
			kind := schema.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r["kind"].(string)}
			if group, ok := r["group"].(string); ok {
				kind.Group = group
			}
			if version, ok := r["version"].(string); ok {
				kind.Version = version
			}
			object, err := scheme.Scheme.New(kind)
			if err != nil {
				fmt.Fprintln(os.Stderr, "left out:", err)
				continue
			}
			t.Roots[kind.GroupVersion().String()+"/"+kind.Kind] = t.typeName(reflect.TypeOf(object).Elem())
		}
	}
}

// shorten drops the common prefixes of the model names.
func (t *table) shorten() {
	short := strings.NewReplacer(
		"io.k8s.apimachinery.pkg.apis.", "", "io.k8s.apiextensions-apiserver.pkg.apis.", "",
		"io.k8s.kube-aggregator.pkg.apis.", "", "io.k8s.api.", "", "io.k8s.apimachinery.pkg.", "")
	types := map[string]*goType{}
	names := []string{}
	for name, made := range t.Types {
		for i := range made.Fields {
			made.Fields[i].Type = short.Replace(made.Fields[i].Type)
		}
		if types[short.Replace(name)] != nil {
			log.Fatalf("two types called %s", short.Replace(name))
		}
		types[short.Replace(name)] = made
		names = append(names, name)
	}
	sort.Strings(names)
	t.Types = types
	for key, name := range t.Roots {
		t.Roots[key] = short.Replace(name)
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
