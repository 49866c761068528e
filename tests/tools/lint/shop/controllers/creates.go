package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/shop/helpers"
)

type CreateReconciler struct {
	client client.Client
	set    kubernetes.Interface

	createFn func(context.Context, client.Object, ...client.CreateOption) error
}

func (r *CreateReconciler) blind(ctx context.Context, secret *corev1.Secret) error {
	err := r.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return r.client.Update(ctx, secret) // want W101
	}
	return err
}

func (r *CreateReconciler) blindAfterReturn(ctx context.Context, config *corev1.ConfigMap) error {
	if err := r.client.Create(ctx, config); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		return r.client.Update(ctx, config) // want W101
	}
	return nil
}

func (r *CreateReconciler) blindTyped(ctx context.Context, secret *corev1.Secret) error {
	_, err := r.set.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	if err != nil && apierrors.IsAlreadyExists(err) {
		_, err = r.set.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{}) // want W101
	}
	return err
}

func (r *CreateReconciler) blindThroughHelper(ctx context.Context, secret *corev1.Secret) error {
	if err := r.create(ctx, secret); apierrors.IsAlreadyExists(err) {
		return r.client.Update(ctx, secret) // want W101
	}
	return nil
}

func (r *CreateReconciler) create(ctx context.Context, obj client.Object) error {
	return r.client.Create(ctx, obj)
}

func (r *CreateReconciler) readsExisting(ctx context.Context, secret *corev1.Secret) error {
	err := r.client.Create(ctx, secret)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &corev1.Secret{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(secret), existing); err != nil {
		return err
	}
	existing.Data = secret.Data
	return r.client.Update(ctx, existing)
}

func (r *CreateReconciler) readsIntoTheSame(ctx context.Context, secret *corev1.Secret) error {
	err := r.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		secret.Data = nil
		return r.client.Update(ctx, secret)
	}
	return err
}

func (r *CreateReconciler) otherBranch(ctx context.Context, secret *corev1.Secret, exists bool) error {
	if !exists {
		if err := r.client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) { // want W105
			return err
		}
		return nil
	}
	return r.client.Update(ctx, secret)
}

func (r *CreateReconciler) copiesVersion(ctx context.Context, secret *corev1.Secret) error {
	err := r.client.Create(ctx, secret)
	if err == nil || !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &corev1.Secret{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(secret), existing); err != nil {
		return err
	}
	secret.ResourceVersion = existing.ResourceVersion
	return r.client.Update(ctx, secret) // want W102
}

func (r *CreateReconciler) copiesVersionInHelper(ctx context.Context, secret *corev1.Secret) error {
	err := r.client.Create(ctx, secret)
	switch {
	case err == nil:
		return nil
	case !apierrors.IsAlreadyExists(err):
		return err
	}
	existing := &corev1.Secret{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(secret), existing); err != nil {
		return err
	}
	helpers.CopyVersion(existing, secret)
	return r.client.Update(ctx, secret) // want W102
}

func (r *CreateReconciler) conflictOfCreate(ctx context.Context, secret *corev1.Secret) error {
	err := r.client.Create(ctx, secret)
	if apierrors.IsConflict(err) { // want W106
		return nil
	}
	return err
}

func (r *CreateReconciler) skips(ctx context.Context, secret *corev1.Secret) error {
	if err := r.client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) { // want W105
		return err
	}
	return nil
}

func (r *CreateReconciler) readsAndReplaces(ctx context.Context, name string) error {
	existing := &corev1.Secret{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, existing); err != nil {
		return err
	}
	desired := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return r.client.Update(ctx, desired) // want W103
}

func (r *CreateReconciler) blindThroughField(ctx context.Context, secret *corev1.Secret) error {
	if err := r.createFn(ctx, secret); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		return r.client.Update(ctx, secret) // want W101
	}
	return nil
}
