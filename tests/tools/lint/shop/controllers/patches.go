package controllers

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	rtclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	shopv1 "example.com/shop/api/v1"
	"example.com/shop/helpers"
)

const finalizer = "shop.example.com/cleanup"

type PatchReconciler struct {
	rtclient.Client
	live rtclient.Reader
}

func (r *PatchReconciler) addFinalizer(ctx context.Context, order *shopv1.Order) error {
	patch := rtclient.MergeFrom(order.DeepCopy())
	controllerutil.AddFinalizer(order, finalizer)
	return r.Patch(ctx, order, patch) // want W201
}

func (r *PatchReconciler) addFinalizerLocked(ctx context.Context, order *shopv1.Order) error {
	patch := rtclient.MergeFromWithOptions(order.DeepCopy(), rtclient.MergeFromWithOptimisticLock{})
	controllerutil.AddFinalizer(order, finalizer)
	return r.Patch(ctx, order, patch)
}

func (r *PatchReconciler) filterFinalizers(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	order.SetFinalizers(helpers.WithoutFinalizer(order.GetFinalizers(), finalizer))
	return r.Patch(ctx, order, rtclient.MergeFrom(base)) // want W201
}

func (r *PatchReconciler) finalizerWasPersistedBefore(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	if !controllerutil.ContainsFinalizer(order, finalizer) {
		controllerutil.AddFinalizer(order, finalizer)
		return r.Update(ctx, order)
	}
	order.Spec.Replicas = 3
	return r.Patch(ctx, order, rtclient.MergeFrom(base))
}

func (r *PatchReconciler) finalizersOfAnotherObject(ctx context.Context, order *shopv1.Order, secret *corev1.Secret) error {
	base := order.DeepCopy()
	controllerutil.AddFinalizer(secret, finalizer)
	order.Labels = map[string]string{"a": "b"}
	return r.Patch(ctx, order, rtclient.MergeFrom(base))
}

func (r *PatchReconciler) throughHelper(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	controllerutil.RemoveFinalizer(order, finalizer)
	return helpers.PatchFrom(ctx, r.Client, order, base) // want W201
}

func (r *PatchReconciler) throughLockedHelper(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	controllerutil.RemoveFinalizer(order, finalizer)
	return helpers.PatchLocked(ctx, r.Client, order, base)
}

func (r *PatchReconciler) own(ctx context.Context, order *shopv1.Order, secret *corev1.Secret) error {
	before := secret.DeepCopy()
	if err := ctrl.SetControllerReference(order, secret, r.Scheme()); err != nil {
		return err
	}
	return r.Patch(ctx, secret, rtclient.MergeFrom(before)) // want W202
}

func (r *PatchReconciler) strategicMergeKeepsOwners(ctx context.Context, order *shopv1.Order, secret *corev1.Secret) error {
	before := secret.DeepCopy()
	if err := ctrl.SetControllerReference(order, secret, r.Scheme()); err != nil {
		return err
	}
	return r.Patch(ctx, secret, rtclient.StrategicMergeFrom(before))
}

func (r *PatchReconciler) setCondition(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	meta.SetStatusCondition(&order.Status.Conditions, metav1.Condition{Type: "Ready"})
	return r.Status().Patch(ctx, order, rtclient.MergeFrom(base)) // want W203
}

func (r *PatchReconciler) appendThroughMethod(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	order.MarkShipped("book")
	return r.Status().Patch(ctx, order, rtclient.MergeFrom(base)) // want W203
}

func (r *PatchReconciler) appendInClosure(ctx context.Context, order *shopv1.Order) error {
	return helpers.MutateStatus(ctx, r.Client, order, func(o *shopv1.Order) { // want W203
		o.Status.Shipped = append(o.Status.Shipped, "book")
	})
}

func (r *PatchReconciler) desiredListInClosure(ctx context.Context, order *shopv1.Order) error {
	return helpers.MutateStatus(ctx, r.Client, order, func(o *shopv1.Order) {
		o.Status.Shipped = []string{"book"}
	})
}

func (r *PatchReconciler) changeItem(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	for i := range order.Spec.Items {
		order.Spec.Items[i].Count = 1
	}
	return r.Patch(ctx, order, rtclient.MergeFrom(base)) // want W203
}

func (r *PatchReconciler) listIsDesired(ctx context.Context, order *shopv1.Order, names []string) error {
	base := order.DeepCopy()
	order.Status.Shipped = names
	return r.Status().Patch(ctx, order, rtclient.MergeFrom(base))
}

func (r *PatchReconciler) listIsBuiltFromNothing(ctx context.Context, order *shopv1.Order, names []string) error {
	base := order.DeepCopy()
	order.Status.Shipped = nil
	for _, name := range names {
		order.Status.Shipped = append(order.Status.Shipped, name)
	}
	return r.Status().Patch(ctx, order, rtclient.MergeFrom(base))
}

func (r *PatchReconciler) mapIsMerged(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	order.SetCheck("payment", "ok")
	return r.Status().Patch(ctx, order, rtclient.MergeFrom(base))
}

func (r *PatchReconciler) appendElsewhere(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	order.Status.Message = "failed"
	var messages []string
	messages = append(messages, order.Status.Message)
	_ = messages
	return r.Status().Patch(ctx, order, rtclient.MergeFrom(base))
}

func (r *PatchReconciler) rawPatch(ctx context.Context, order *shopv1.Order) error {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"finalizers": append(order.Finalizers, finalizer)},
	})
	if err != nil {
		return err
	}
	return r.Patch(ctx, order, rtclient.RawPatch(types.MergePatchType, data)) // want W201
}

func (r *PatchReconciler) rawPatchLocked(ctx context.Context, order *shopv1.Order) error {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"finalizers":      append(order.Finalizers, finalizer),
			"resourceVersion": order.ResourceVersion,
		},
	})
	if err != nil {
		return err
	}
	return r.Patch(ctx, order, rtclient.RawPatch(types.MergePatchType, data))
}

func (r *PatchReconciler) lockedByAccident(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	if err := r.Status().Update(ctx, order); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(order, finalizer)
	return r.Patch(ctx, order, rtclient.MergeFrom(base))
}

func (r *PatchReconciler) otherBranch(ctx context.Context, order *shopv1.Order, add bool) error {
	base := order.DeepCopy()
	if add {
		controllerutil.AddFinalizer(order, finalizer)
		return r.Update(ctx, order)
	} else {
		order.Labels["seen"] = "true"
	}
	return r.Patch(ctx, order, rtclient.MergeFrom(base))
}
