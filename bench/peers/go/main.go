// The work of bench/work.py, by controller-runtime: children by CreateOrUpdate, or with -apply by server-side apply.
// Finalizer and status are written as kubebuilder's scaffold has them, with Update.
package main

import (
	"context"
	"flag"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "bench.fairlead.dev/pages"

type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PageText `json:"spec,omitempty"`
	Status            PageText `json:"status,omitempty"`
}

type PageText struct {
	Message string `json:"message,omitempty"`
}

func (p *Page) DeepCopyObject() runtime.Object {
	copied := *p
	p.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

type PageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Page `json:"items"`
}

func (l *PageList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Page, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*Page)
	}
	return &copied
}

type reconciler struct {
	client.Client
	scheme *runtime.Scheme
	apply  bool
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	page := &Page{}
	if err := r.Get(ctx, request.NamespacedName, page); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !page.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(page, finalizer) {
			return ctrl.Result{}, r.Update(ctx, page)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(page, finalizer) {
		if err := r.Update(ctx, page); err != nil {
			return ctrl.Result{}, err
		}
	}
	children := r.createOrUpdate
	if r.apply {
		children = r.applyChildren
	}
	if err := children(ctx, page); err != nil {
		return ctrl.Result{}, err
	}
	if page.Status.Message != page.Spec.Message {
		page.Status.Message = page.Spec.Message
		return ctrl.Result{}, r.Status().Update(ctx, page)
	}
	return ctrl.Result{}, nil
}

func (r *reconciler) createOrUpdate(ctx context.Context, page *Page) error {
	meta := metav1.ObjectMeta{Name: page.Name, Namespace: page.Namespace}
	labels := map[string]string{"page": page.Name}
	configMap := &corev1.ConfigMap{ObjectMeta: meta}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, configMap, func() error {
		configMap.Data = map[string]string{"message": page.Spec.Message}
		return controllerutil.SetControllerReference(page, configMap, r.scheme)
	}); err != nil {
		return err
	}
	service := &corev1.Service{ObjectMeta: meta}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		service.Spec.Selector = labels
		service.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)}}
		return controllerutil.SetControllerReference(page, service, r.scheme)
	}); err != nil {
		return err
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		replicas := int32(1)
		deployment.Spec.Replicas = &replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		template := &deployment.Spec.Template
		template.Labels = labels
		if template.Annotations == nil {
			template.Annotations = map[string]string{}
		}
		template.Annotations["message"] = page.Spec.Message
		if len(template.Spec.Containers) != 1 {
			template.Spec.Containers = make([]corev1.Container, 1)
		}
		web := &template.Spec.Containers[0] // what the server defaulted stays
		web.Name, web.Image = "web", "nginx:1.29"
		if len(web.Ports) != 1 {
			web.Ports = []corev1.ContainerPort{{ContainerPort: 80}}
		}
		return controllerutil.SetControllerReference(page, deployment, r.scheme)
	})
	return err
}

func (r *reconciler) applyChildren(ctx context.Context, page *Page) error {
	labels := map[string]string{"page": page.Name}
	owner := metaapply.OwnerReference().WithAPIVersion("bench.fairlead.dev/v1").WithKind("Page").WithName(page.Name).
		WithUID(page.UID).WithController(true).WithBlockOwnerDeletion(true)
	web := coreapply.Container().WithName("web").WithImage("nginx:1.29").
		WithPorts(coreapply.ContainerPort().WithContainerPort(80))
	template := coreapply.PodTemplateSpec().WithLabels(labels).
		WithAnnotations(map[string]string{"message": page.Spec.Message}).WithSpec(coreapply.PodSpec().WithContainers(web))
	for _, child := range []runtime.ApplyConfiguration{
		coreapply.ConfigMap(page.Name, page.Namespace).WithOwnerReferences(owner).
			WithData(map[string]string{"message": page.Spec.Message}),
		coreapply.Service(page.Name, page.Namespace).WithOwnerReferences(owner).
			WithSpec(coreapply.ServiceSpec().WithSelector(labels).WithPorts(coreapply.ServicePort().WithPort(80))),
		appsapply.Deployment(page.Name, page.Namespace).WithOwnerReferences(owner).
			WithSpec(appsapply.DeploymentSpec().WithReplicas(1).
				WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).WithTemplate(template)),
	} {
		if err := r.Apply(ctx, child, client.FieldOwner("pages"), client.ForceOwnership); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	apply := flag.Bool("apply", false, "write children by server-side apply")
	namespace := flag.String("namespace", "default", "where the pages are")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := run(*apply, *namespace); err != nil {
		log.Log.Error(err, "ended")
		os.Exit(1)
	}
}

func run(apply bool, namespace string) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	version := schema.GroupVersion{Group: "bench.fairlead.dev", Version: "v1"}
	scheme.AddKnownTypes(version, &Page{}, &PageList{})
	metav1.AddToGroupVersion(scheme, version)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&Page{}).
		Owns(&corev1.ConfigMap{}).Owns(&corev1.Service{}).Owns(&appsv1.Deployment{}).
		Complete(&reconciler{Client: manager.GetClient(), scheme: scheme, apply: apply})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
