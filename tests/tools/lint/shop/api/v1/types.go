package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Phase string

type Item struct {
	Name  string `json:"name"`
	Count int32  `json:"count"`
}

type OrderSpec struct {
	Items    []Item   `json:"items"`
	Replicas int32    `json:"replicas"`
	Tags     []string `json:"tags"`
}

type OrderStatus struct {
	Phase      Phase              `json:"phase"`
	Message    string             `json:"message"`
	Conditions []metav1.Condition `json:"conditions"`
	Shipped    []string           `json:"shipped"`
	Checks     map[string]string  `json:"checks"`
}

type Order struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   OrderSpec   `json:"spec"`
	Status OrderStatus `json:"status"`
}

type OrderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Order `json:"items"`
}

func (o *Order) SetPhase(phase Phase) { o.Status.Phase = phase }

func (o *Order) MarkShipped(item string) {
	o.Status.Shipped = append(o.Status.Shipped, item)
}

func (o *Order) SetCheck(name, result string) {
	if o.Status.Checks == nil {
		o.Status.Checks = map[string]string{}
	}
	o.Status.Checks[name] = result
}
