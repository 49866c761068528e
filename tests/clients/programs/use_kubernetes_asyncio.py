"""Use kubernetes-asyncio: all verbs, a watch that resumes, and the status of a custom resource."""

import asyncio

from kubernetes_asyncio import client, config, watch


async def main():
    await config.load_kube_config()
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        created_secret = await core.create_namespaced_secret(
            "default", client.V1Secret(metadata={"name": "s"}, string_data={"password": "x"})
        )
        assert created_secret.data == {"password": "eA=="}
        listed = await core.list_namespaced_secret("default")
        assert [secret.metadata.name for secret in listed.items] == ["s"]

        async def seen():
            watched_events = []
            async with watch.Watch().stream(
                core.list_namespaced_secret, "default", resource_version=listed.metadata.resource_version
            ) as stream:
                async for event in stream:
                    watched_events.append((event["type"], event["object"].metadata.name))
                    if event["type"] == "DELETED":
                        break
            return watched_events

        watching = asyncio.ensure_future(seen())
        await core.patch_namespaced_secret("s", "default", {"metadata": {"labels": {"a": "b"}}})
        await core.delete_namespaced_secret("s", "default")
        assert await asyncio.wait_for(watching, 20) == [("MODIFIED", "s"), ("DELETED", "s")]
        try:
            await core.read_namespaced_secret("s", "default")
            raise AssertionError("it was deleted")
        except client.ApiException as error:
            assert error.status == 404
        pods = client.V1Pod(
            metadata={"name": "p"}, spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")])
        )
        await core.create_namespaced_pod("default", pods)
        status = {"status": {"phase": "Running"}}
        patched = await core.patch_namespaced_pod_status("p", "default", status)
        assert patched.status.phase == "Running"
        leases = client.CoordinationV1Api(api)
        await leases.create_namespaced_lease(
            "default", client.V1Lease(metadata={"name": "l"}, spec=client.V1LeaseSpec(holder_identity="me"))
        )
        review = client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(
                resource_attributes=client.V1ResourceAttributes(verb="get", resource="pods")
            )
        )
        access_review = await client.AuthorizationV1Api(api).create_self_subject_access_review(review)
        assert access_review.status.allowed


asyncio.run(main())
print("done")
