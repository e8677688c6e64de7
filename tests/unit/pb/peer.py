#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Google's protobuf as an independent peer: reads what our encoders wrote
(stored records), writes it again, and makes ZDS bytes of its own.

usage: peer.py PROTO-DIR WORK-DIR STORED-RECORDS ECHO; ECHO is zds_echo.c, which
decodes a request and encodes it again."""
import glob
import importlib
import os
import subprocess
import sys


def compile_protos(proto_dir, work_dir):
    os.makedirs(work_dir, exist_ok=True)
    subprocess.run(['protoc', '-I' + proto_dir, '--python_out=' + work_dir, 'ipc.proto', 'zds.proto'], check=True)
    sys.path.insert(0, work_dir)
    return importlib.import_module('ipc_pb2'), importlib.import_module('zds_pb2')


def check_unknown(message, where):
    """No field that the .proto file doesn't have."""
    assert len(message.UnknownFields()) == 0, where
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in value if field.label == field.LABEL_REPEATED else [value]:
            check_unknown(one, where + '.' + field.name)


def check_records(ipc, stored):
    files = sorted(glob.glob(os.path.join(stored, '*', '*.bin')))
    assert files, 'no stored records in ' + stored
    for path in files:
        data = open(path, 'rb').read()
        record = ipc.Record()
        record.ParseFromString(data)
        assert record.WhichOneof('body'), path
        check_unknown(record, os.path.basename(path))
        assert record.SerializeToString(deterministic=True) == data, path + ': written differently'
    view = ipc.Record()
    view.ParseFromString(open(os.path.join(stored, '0.1.0', 'answer-view.bin'), 'rb').read())
    workload = view.answer_view.endpoints[0].workload
    assert workload.uid == 'Kubernetes//Pod/demo/echo-1'
    assert list(workload.ips) == [bytes([10, 0, 0, 7]), bytes.fromhex('20010db8000000000000000000000007')]
    assert workload.network_gateway.host == 'gw.istio-system.svc'
    assert list(view.answer_view.service.scopes) == [6, 1, 2]
    assert view.answer_view.service.cidrs[0].cidr == bytes([240, 240, 0, 3, 16])
    return len(files)


def requests(zds):
    info = zds.WorkloadInfo(name='echo-1', namespace='demo', service_account='écho')
    yield zds.WorkloadRequest(add=zds.AddWorkload(uid='53c44d9a', workload_info=info))
    yield zds.WorkloadRequest(add=zds.AddWorkload(uid='', workload_info=zds.WorkloadInfo()))
    yield zds.WorkloadRequest(add=zds.AddWorkload(uid='x'))
    yield zds.WorkloadRequest(keep=zds.KeepWorkload(uid='u1'))
    yield zds.WorkloadRequest(**{'del': zds.DelWorkload(uid='u1')})
    yield zds.WorkloadRequest(snapshot_sent=zds.SnapshotSent())


def check_zds(zds, echo):
    for request in requests(zds):
        data = request.SerializeToString()
        out = subprocess.run([echo, 'request'], input=data, stdout=subprocess.PIPE, check=True).stdout
        assert out == data, '%s came back as %s' % (data.hex(), out.hex())
        back = zds.WorkloadRequest()
        back.ParseFromString(out)
        assert back == request
    for text in ('', 'failure to start proxy : Bind', 'ü' * 400):
        out = subprocess.run([echo, 'response'], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
        assert out == zds.WorkloadResponse(ack=zds.Ack(error=text)).SerializeToString(), text
    out = subprocess.run([echo, 'hello'], input=b'', stdout=subprocess.PIPE, check=True).stdout
    assert zds.ZdsHello.FromString(out).version == zds.V1


def main():
    proto_dir, work_dir, stored, echo = sys.argv[1:]
    try:
        import google.protobuf  # noqa: F401
    except ImportError:
        print('python3-protobuf is not installed')
        sys.exit(77)
    ipc, zds = compile_protos(proto_dir, work_dir)
    print('%d stored records' % check_records(ipc, stored))
    check_zds(zds, echo)


if __name__ == '__main__':
    main()
