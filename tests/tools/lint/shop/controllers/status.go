package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	shopv1 "example.com/shop/api/v1"
)

type StatusReconciler struct {
	client.Client
}

func (r *StatusReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&shopv1.Order{}).Complete(r)
}

func (r *StatusReconciler) start(ctx context.Context, order *shopv1.Order) error {
	if order.Status.Phase != "" {
		return nil
	}
	return r.Create(ctx, &corev1.Pod{})
}

func (r *StatusReconciler) decide(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	order.Status.Phase = "Running"
	return r.Status().Patch(ctx, order, client.MergeFrom(base)) // want W204
}

func (r *StatusReconciler) decideInMethod(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	order.SetPhase("Running")
	return r.Status().Patch(ctx, order, client.MergeFrom(base)) // want W204
}

func (r *StatusReconciler) decideLocked(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	order.Status.Phase = "Running"
	return r.Status().Patch(ctx, order, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

func (r *StatusReconciler) onlyDescribes(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	order.Status.Message = "running"
	return r.Status().Patch(ctx, order, client.MergeFrom(base))
}

func (r *StatusReconciler) update(ctx context.Context, req ctrl.Request) error {
	order := &shopv1.Order{}
	if err := r.Get(ctx, req.NamespacedName, order); err != nil {
		return err
	}
	order.Status.Message = "seen"
	return r.Status().Update(ctx, order) // want W205
}

func (r *StatusReconciler) addFinalizer(ctx context.Context, order *shopv1.Order) error {
	controllerutil.AddFinalizer(order, finalizer)
	return r.Update(ctx, order) // want W206
}

func (r *StatusReconciler) writeSpec(ctx context.Context, order *shopv1.Order) error {
	order.Spec.Replicas = 3
	return r.Update(ctx, order) // want W207
}

func (r *StatusReconciler) annotate(ctx context.Context, order *shopv1.Order) error {
	order.Annotations["seen"] = "true"
	return r.Update(ctx, order)
}

func (r *StatusReconciler) addWhileDeleting(ctx context.Context, order *shopv1.Order) error {
	if !order.GetDeletionTimestamp().IsZero() {
		controllerutil.AddFinalizer(order, finalizer) // want W208
		return r.Update(ctx, order) // want W206
	}
	return nil
}

func (r *StatusReconciler) dropError(ctx context.Context, order *shopv1.Order) {
	order.Status.Message = "seen"
	_ = r.Status().Update(ctx, order) // want W205 W502
}
