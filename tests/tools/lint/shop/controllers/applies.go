package controllers

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shopv1 "example.com/shop/api/v1"
)

type ApplyReconciler struct {
	client.Client
}

func (r *ApplyReconciler) applyWhatWasRead(ctx context.Context, key client.ObjectKey) error {
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, key, deployment); err != nil {
		return err
	}
	deployment.Spec.Paused = true
	return r.Patch(ctx, deployment, client.Apply, client.FieldOwner("shop")) // want W602
}

func (r *ApplyReconciler) applyOwnFields(ctx context.Context, key client.ObjectKey) error {
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}}
	deployment.Name = key.Name
	return r.Patch(ctx, deployment, client.Apply, client.FieldOwner("shop"), client.ForceOwnership)
}

func (r *ApplyReconciler) forceWhatWasRead(ctx context.Context, key client.ObjectKey) error {
	live := &appsv1.Deployment{}
	if err := r.Get(ctx, key, live); err != nil {
		return err
	}
	deployment := &appsv1.Deployment{Spec: live.Spec}
	return r.Patch(ctx, deployment, client.Apply, client.FieldOwner("shop"), client.ForceOwnership) // want W603
}

func (r *ApplyReconciler) errorWithDelay(ctx context.Context, deployment *appsv1.Deployment) (ctrl.Result, error) {
	if err := r.Create(ctx, deployment); err != nil {
		return ctrl.Result{RequeueAfter: time.Minute}, err // want W503
	}
	return ctrl.Result{RequeueAfter: time.Minute}, nil
}

func (r *ApplyReconciler) errorAlone(ctx context.Context, deployment *appsv1.Deployment) (ctrl.Result, error) {
	if err := r.Create(ctx, deployment); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: time.Minute}, nil
}

func (r *ApplyReconciler) writeAlways(ctx context.Context, order *shopv1.Order) error {
	order.Status.Message = "done"
	return r.Status().Update(ctx, order) // want W802
}

func (r *ApplyReconciler) writeIfChanged(ctx context.Context, order *shopv1.Order) error {
	before := order.DeepCopy()
	order.Status.Message = "done"
	if equality.Semantic.DeepEqual(before.Status, order.Status) {
		return nil
	}
	return r.Status().Update(ctx, order)
}
