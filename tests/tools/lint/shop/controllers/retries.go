package controllers

import (
	"context"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shopv1 "example.com/shop/api/v1"
	"example.com/shop/helpers"
)

type RetryReconciler struct {
	client.Client
	APIReader client.Reader
}

func (r *RetryReconciler) dead(ctx context.Context, order *shopv1.Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // want W301
		if err := r.Get(ctx, client.ObjectKeyFromObject(order), order); err != nil {
			return err
		}
		base := order.DeepCopy()
		order.Status.Message = "done"
		return r.Status().Patch(ctx, order, client.MergeFrom(base))
	})
}

func (r *RetryReconciler) deadInHelper(ctx context.Context, order *shopv1.Order) error {
	base := order.DeepCopy()
	order.Labels["seen"] = "true"
	return helpers.Retry(func() error { // want W301
		return r.Patch(ctx, order, client.MergeFrom(base))
	})
}

func (r *RetryReconciler) locked(ctx context.Context, order *shopv1.Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(order), order); err != nil {
			return err
		}
		base := order.DeepCopy()
		order.Status.Message = "done"
		return r.Status().Patch(ctx, order, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
}

func (r *RetryReconciler) restores(ctx context.Context, order *shopv1.Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // want W302
		latest := &shopv1.Order{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(order), latest); err != nil {
			return err
		}
		latest.Status = order.Status
		return r.Status().Update(ctx, latest)
	})
}

func (r *RetryReconciler) restoresVersion(ctx context.Context, order *shopv1.Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // want W302
		latest := &shopv1.Order{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(order), latest); err != nil {
			return err
		}
		order.ResourceVersion = latest.ResourceVersion
		return r.Update(ctx, order)
	})
}

func (r *RetryReconciler) copiesToTheCaller(ctx context.Context, order *shopv1.Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		latest := &shopv1.Order{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(order), latest); err != nil {
			return err
		}
		latest.Status.Message = "done"
		if err := r.Status().Update(ctx, latest); err != nil {
			return err
		}
		order.Status = latest.Status
		return nil
	})
}

func (r *RetryReconciler) withoutRead(ctx context.Context, order *shopv1.Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // want W303
		order.Status.Message = "done"
		return r.Status().Update(ctx, order)
	})
}

func (r *RetryReconciler) readsInHelper(ctx context.Context, order *shopv1.Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := r.refresh(ctx, order); err != nil {
			return err
		}
		order.Status.Message = "done"
		return r.Status().Update(ctx, order)
	})
}

func (r *RetryReconciler) refresh(ctx context.Context, order *shopv1.Order) error {
	return r.APIReader.Get(ctx, client.ObjectKeyFromObject(order), order)
}

func (r *RetryReconciler) readsTheCache(ctx context.Context, order *shopv1.Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // want W304
		if err := r.Get(ctx, client.ObjectKeyFromObject(order), order); err != nil {
			return err
		}
		order.Status.Message = "done"
		return r.Status().Update(ctx, order)
	})
}

func (r *RetryReconciler) mergesLabels(ctx context.Context, order *shopv1.Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		latest := &shopv1.Order{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(order), latest); err != nil {
			return err
		}
		latest.Labels = helpers.MergeLabels(latest.Labels, order.Labels)
		return r.Update(ctx, latest)
	})
}

func (r *RetryReconciler) computedStatus(ctx context.Context, order *shopv1.Order) error {
	status := shopv1.OrderStatus{Message: "done"}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		latest := &shopv1.Order{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(order), latest); err != nil {
			return err
		}
		latest.Status = status
		return r.Status().Update(ctx, latest)
	})
}
