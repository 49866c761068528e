// This oracle fills objects of the built-in kinds with random values and encodes them with k8s.io/api's protobuf encoder.
// It also decodes submitted bytes with Go's decoder. Each line of input is a request, each line of output its response.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type question struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Seed       int64  `json:"seed"`
	Body       []byte `json:"body"` // the bytes to decode, instead of random values
}

type answer struct {
	Body  []byte         `json:"body,omitempty"`
	JSON  runtime.Object `json:"json,omitempty"`
	Error string         `json:"error,omitempty"`
}

func main() {
	must(apiextensions.AddToScheme(scheme.Scheme))
	must(apiregistration.AddToScheme(scheme.Scheme))
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var q question
		must(json.Unmarshal(line, &q))
		gvk := schema.FromAPIVersionAndKind(q.APIVersion, q.Kind)
		var a answer
		if q.Body == nil {
			object, err := scheme.Scheme.New(gvk)
			must(err)
			(&filler{rand.New(rand.NewSource(q.Seed))}).fill(reflect.ValueOf(object).Elem(), 0)
			object.GetObjectKind().SetGroupVersionKind(gvk)
			a.Body, err = runtime.Encode(serializer, object)
			must(err)
			q.Body = a.Body
		}
		object, actual, err := serializer.Decode(q.Body, &gvk, nil)
		if err != nil {
			a.Error = err.Error()
		} else {
			object.GetObjectKind().SetGroupVersionKind(*actual)
			a.JSON = object
		}
		out, err := json.Marshal(a)
		if err != nil { // decoded, but JSON cannot represent it
			out, _ = json.Marshal(answer{Error: "json: " + err.Error()})
		}
		fmt.Println(string(out))
	}
}

type filler struct{ *rand.Rand }

const deepest = 12

func (f *filler) text() string {
	words := []string{"", "a", "web", "0", "näme", "\u2028", "<&>", "\xff\xfe", "a/b.c", "10%"}
	return words[f.Intn(len(words))]
}

func (f *filler) json() []byte {
	values := []string{`{}`, `{"a":1}`, `{"b":[true,null,"x"]}`, `{"c":{"d":1.5}}`}
	return []byte(values[f.Intn(len(values))])
}

func (f *filler) moment() time.Time {
	if f.Intn(5) == 0 {
		return time.Time{}
	}
	return time.Unix(f.Int63n(4e9)-1e9, f.Int63n(1e9))
}

func (f *filler) props() *apiextensions.JSONSchemaProps {
	made := &apiextensions.JSONSchemaProps{}
	f.fill(reflect.ValueOf(made).Elem(), deepest-1)
	return made
}

func (f *filler) fill(v reflect.Value, depth int) {
	switch at := v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
		return
	case *metav1.Time:
		at.Time = f.moment()
		return
	case *metav1.MicroTime:
		at.Time = f.moment()
		return
	case *metav1.Duration:
		at.Duration = time.Duration(f.Int63n(1e15))
		return
	case *metav1.FieldsV1:
		at.SetRawBytes(f.json())
		return
	case *resource.Quantity:
		forms := []string{"0", "500m", "1Gi", "1e3", "1500", "0.1", "-3Ki", "1n", "12E"}
		*at = resource.MustParse(forms[f.Intn(len(forms))])
		return
	case *intstr.IntOrString:
		*at = intstr.FromInt32(int32(f.Uint32()))
		if f.Intn(2) == 0 {
			*at = intstr.FromString(f.text())
		}
		return
	case *runtime.RawExtension:
		at.Raw = f.json()
		return
	case *apiextensions.JSON:
		at.Raw = f.json()
		return
	case *apiextensions.JSONSchemaPropsOrBool:
		at.Allows = f.Intn(2) == 0
		if f.Intn(3) == 0 {
			at.Allows, at.Schema = true, f.props()
		}
		return
	case *apiextensions.JSONSchemaPropsOrArray:
		if f.Intn(2) == 0 {
			at.Schema = f.props()
		} else {
			at.JSONSchemas = []apiextensions.JSONSchemaProps{*f.props(), *f.props()}
		}
		return
	case *apiextensions.JSONSchemaPropsOrStringArray:
		if f.Intn(2) == 0 {
			at.Schema = f.props()
		} else {
			at.Property = []string{"a", "b"}
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < deepest && f.Intn(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(f.text()))
			return
		}
		if depth >= deepest {
			return
		}
		size := f.Intn(3)
		v.Set(reflect.MakeSlice(v.Type(), size, size))
		for i := 0; i < size; i++ {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if depth >= deepest {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for i := f.Intn(3); i > 0; i-- {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(fmt.Sprint("k", i))
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.Intn(2) == 0)
	case reflect.Int32:
		v.SetInt(int64(int32(f.Uint32())))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.Uint64()))
	case reflect.Float64:
		v.SetFloat(float64(f.Intn(1000)) / 8)
	default:
		panic(v.Type())
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
