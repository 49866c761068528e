//! The work of bench/work.py, by kube-rs: children by server-side apply, its own finalizer helper, status by merge patch.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        controller::{Action, Controller},
        finalizer::{Event, finalizer},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

const FINALIZER: &str = "bench.fairlead.dev/pages";

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(
    group = "bench.fairlead.dev",
    version = "v1",
    kind = "Page",
    namespaced,
    status = "PageStatus"
)]
struct PageSpec {
    message: String,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, JsonSchema)]
struct PageStatus {
    message: Option<String>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug)]
struct Failed(Failure);

impl std::fmt::Display for Failed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(out)
    }
}

impl std::error::Error for Failed {}

async fn apply<K>(client: &Client, page: &Page, mut child: Value) -> Result<(), Failed>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    child["apiVersion"] = K::api_version(&()).into();
    child["kind"] = K::kind(&()).into();
    child["metadata"] =
        json!({"name": page.name_any(), "ownerReferences": [page.controller_owner_ref(&())]});
    let api: Api<K> = Api::namespaced(client.clone(), &page.namespace().unwrap_or_default());
    api.patch(
        &page.name_any(),
        &PatchParams::apply("pages").force(),
        &Patch::Apply(child),
    )
    .await
    .map_err(|error| Failed(error.into()))?;
    Ok(())
}

async fn publish(client: &Client, page: &Page) -> Result<Action, Failed> {
    let message = &page.spec.message;
    let labels = json!({"page": page.name_any()});
    apply::<ConfigMap>(client, page, json!({"data": {"message": message}})).await?;
    apply::<Service>(
        client,
        page,
        json!({"spec": {"selector": labels, "ports": [{"port": 80}]}}),
    )
    .await?;
    let web = json!({"name": "web", "image": "nginx:1.29", "ports": [{"containerPort": 80}]});
    let pod = json!({"metadata": {"labels": labels, "annotations": {"message": message}}, "spec": {"containers": [web]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": pod});
    apply::<Deployment>(client, page, json!({"spec": spec})).await?;
    if page
        .status
        .as_ref()
        .and_then(|status| status.message.as_ref())
        != Some(message)
    {
        let pages: Api<Page> =
            Api::namespaced(client.clone(), &page.namespace().unwrap_or_default());
        let status = Patch::Merge(json!({"status": {"message": message}}));
        pages
            .patch_status(&page.name_any(), &PatchParams::default(), &status)
            .await
            .map_err(|error| Failed(error.into()))?;
    }
    Ok(Action::await_change())
}

async fn reconcile(page: Arc<Page>, client: Arc<Client>) -> Result<Action, Failed> {
    let pages: Api<Page> =
        Api::namespaced((*client).clone(), &page.namespace().unwrap_or_default());
    finalizer(&pages, FINALIZER, page, |event| async {
        match event {
            Event::Apply(page) => publish(&client, &page).await,
            Event::Cleanup(_) => Ok(Action::await_change()),
        }
    })
    .await
    .map_err(|error| Failed(error.into()))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let namespace = std::env::args().nth(1).unwrap_or("default".into());
    let client = Client::try_default().await?;
    let watched = watcher::Config::default;
    Controller::new(
        Api::<Page>::namespaced(client.clone(), &namespace),
        watched(),
    )
    .owns(
        Api::<ConfigMap>::namespaced(client.clone(), &namespace),
        watched(),
    )
    .owns(
        Api::<Service>::namespaced(client.clone(), &namespace),
        watched(),
    )
    .owns(
        Api::<Deployment>::namespaced(client.clone(), &namespace),
        watched(),
    )
    .shutdown_on_signal()
    .run(
        reconcile,
        |_, error, _| {
            eprintln!("{error}");
            Action::requeue(Duration::from_secs(1))
        },
        Arc::new(client),
    )
    .for_each(|_| async {})
    .await;
    Ok(())
}
