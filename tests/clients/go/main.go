// A controller on controller-runtime with its default content types: protobuf for built-in kinds, JSON for custom ones.
//
// It defines a kind, runs a manager with leader election, follows one object from its creation to its end, and
// prints "done". Anything that does not come within half a minute ends it with an error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "example.com/go"

var (
	kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	name = types.NamespacedName{Namespace: "default", Name: "w"}
)

func widget() *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(kind)
	made.SetNamespace(name.Namespace)
	made.SetName(name.Name)
	return made
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	owner := widget()
	if err := r.Get(ctx, request.NamespacedName, owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !owner.GetDeletionTimestamp().IsZero() {
		if err := client.IgnoreNotFound(r.Delete(ctx, deployment())); err != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(owner, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, owner))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(owner, finalizer) {
		return ctrl.Result{}, r.Update(ctx, owner)
	}
	size, _, err := unstructured.NestedInt64(owner.Object, "spec", "size")
	if err != nil {
		return ctrl.Result{}, err
	}
	child := deployment()
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		labels := map[string]string{"app": name.Name}
		child.Spec.Replicas = ptr.To(int32(size))
		child.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		child.Spec.Template.Labels = labels
		if len(child.Spec.Template.Spec.Containers) == 0 {
			child.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		}
		return controllerutil.SetControllerReference(owner, child, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	base := owner.DeepCopy()
	if err := unstructured.SetNestedField(owner.Object, size, "status", "size"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, owner, client.MergeFrom(base))
}

func define(ctx context.Context, direct client.Client) error {
	object := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": kind.Group,
			"scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "kind": kind.Kind},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": object},
			}},
		},
	}}
	if err := direct.Create(ctx, made); err != nil {
		return err
	}
	return until(ctx, "the definition", func() bool { return direct.List(ctx, list()) == nil })
}

func list() *unstructured.UnstructuredList {
	made := &unstructured.UnstructuredList{}
	made.SetGroupVersionKind(kind.GroupVersion().WithKind("WidgetList"))
	return made
}

func until(ctx context.Context, what string, come func() bool) error {
	for range 600 {
		if come() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("ended while waiting for %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s never came", what)
}

// drive follows one object through its life, as a user would cause it.
func drive(ctx context.Context, direct, cached client.Client) error {
	made := widget()
	_ = unstructured.SetNestedField(made.Object, int64(1), "spec", "size")
	if err := direct.Create(ctx, made); err != nil {
		return err
	}
	child := deployment()
	if err := until(ctx, "the child", func() bool {
		return cached.Get(ctx, name, child) == nil && *child.Spec.Replicas == 1
	}); err != nil {
		return err
	}
	if !metav1.IsControlledBy(child, made) {
		return errors.New("the child is not its owner's")
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":3}}`))
	if err := direct.Patch(ctx, made, patch); err != nil {
		return err
	}
	if err := until(ctx, "the new size", func() bool {
		seen := widget()
		if direct.Get(ctx, name, seen) != nil || cached.Get(ctx, name, child) != nil {
			return false
		}
		size, _, _ := unstructured.NestedInt64(seen.Object, "status", "size")
		return size == 3 && *child.Spec.Replicas == 3
	}); err != nil {
		return err
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := cached.Get(ctx, name, metadata); err != nil {
		return fmt.Errorf("metadata only: %w", err)
	}
	applied := corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "applied"},
		Data:       map[string]string{"k": "v"},
	}
	if err := direct.Patch(ctx, &applied, client.Apply, client.FieldOwner("go")); err != nil { //nolint:staticcheck
		return fmt.Errorf("apply: %w", err)
	}
	if err := direct.Delete(ctx, made); err != nil {
		return err
	}
	return until(ctx, "the end", func() bool {
		return apierrors.IsNotFound(direct.Get(ctx, name, widget())) && apierrors.IsNotFound(direct.Get(ctx, name, deployment()))
	})
}

// typed goes through client-go's own clients, which send protobuf too.
func typed(ctx context.Context, set *kubernetes.Clientset) error {
	roles := set.RbacV1().Roles("default")
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	made, err := roles.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Rules[0].Verbs = []string{"get", "list"}
	if made, err = roles.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if len(made.Rules[0].Verbs) != 2 {
		return errors.New("the update was lost")
	}
	wrong := types.UID("00000000-0000-0000-0000-000000000000")
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}
	if err := roles.Delete(ctx, "r", options); !apierrors.IsConflict(err) {
		return fmt.Errorf("a delete with another uid: %v", err)
	}
	return roles.Delete(ctx, "r", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}})
}

func run() error {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	access, err := config.GetConfig()
	if err != nil {
		return err
	}
	direct, err := client.New(access, client.Options{})
	if err != nil {
		return err
	}
	if err := define(ctx, direct); err != nil {
		return err
	}
	if err := typed(ctx, kubernetes.NewForConfigOrDie(access)); err != nil {
		return fmt.Errorf("typed client: %w", err)
	}
	manager, err := ctrl.NewManager(access, ctrl.Options{
		LeaderElection:          true,
		LeaderElectionID:        "go.example.com",
		LeaderElectionNamespace: "default",
		Metrics:                 metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).For(widget()).Owns(&appsv1.Deployment{}).
		Complete(&reconciler{manager.GetClient()}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	if err := until(ctx, "leadership", func() bool {
		select {
		case <-manager.Elected():
			return true
		default:
			return false
		}
	}); err != nil {
		return err
	}
	if err := drive(ctx, direct, manager.GetClient()); err != nil {
		return err
	}
	cancel()
	return <-ended
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("done")
}
