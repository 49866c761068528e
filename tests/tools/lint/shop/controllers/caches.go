package controllers

import (
	corev1 "k8s.io/api/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	shopv1 "example.com/shop/api/v1"
)

type CacheReconciler struct {
	secretLister listers.SecretLister
}

func (r *CacheReconciler) changes(namespace, name string) error {
	secret, err := r.secretLister.Secrets(namespace).Get(name) // want W401
	if err != nil {
		return err
	}
	secret.Labels["seen"] = "true"
	return nil
}

func (r *CacheReconciler) copies(namespace, name string) error {
	secret, err := r.secretLister.Secrets(namespace).Get(name)
	if err != nil {
		return err
	}
	secret = secret.DeepCopy()
	secret.Labels["seen"] = "true"
	return nil
}

func (r *CacheReconciler) changesInHelper(namespace, name string) error {
	secret, err := r.secretLister.Secrets(namespace).Get(name)
	if err != nil {
		return err
	}
	label(secret) // want W401
	return nil
}

func (r *CacheReconciler) changesReturned(namespace, name string) error {
	secret, err := r.find(namespace, name)
	if err != nil {
		return err
	}
	secret.Data = nil // want W401
	return nil
}

func (r *CacheReconciler) find(namespace, name string) (*corev1.Secret, error) {
	return r.secretLister.Secrets(namespace).Get(name)
}

func label(secret *corev1.Secret) {
	secret.Labels["seen"] = "true"
}

func handlers() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj interface{}) {
			secret := obj.(*corev1.Secret)
			secret.Data = nil // want W401
		},
		DeleteFunc: func(obj interface{}) {
			secret := obj.(*corev1.Secret).DeepCopy()
			secret.Data = nil
		},
	}
}

func predicates() predicate.Funcs {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			delete(e.ObjectNew.GetAnnotations(), "seen") // want W401
			return true
		},
	}
}

func (r *CacheReconciler) passesAStruct(namespace, name string) error {
	secret, err := r.secretLister.Secrets(namespace).Get(name)
	if err != nil {
		return err
	}
	order := shopv1.Order{}
	order.Name = secret.Name
	changeCopy(order)
	return nil
}

func changeCopy(order shopv1.Order) {
	order.Spec.Replicas = 1
}
