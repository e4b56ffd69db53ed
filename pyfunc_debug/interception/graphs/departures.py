"""Nodes that are about to leave the process: saved in a SavedModel, or given to the tf.data service.

A save ends in `saved_model.save.save_and_return_nodes`, also Keras' export; that of a session in `save` of
its builder, or the graph becomes one without variables, to be written. A dataset is handed to the service in
`data_service_ops._register_dataset`. What was saved is read from the file, once it is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pyfunc_debug.events import FROZEN, TFLITE, Notice, Observer
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.graphs.held import Held, held, held_in
from pyfunc_debug.program.frames import caller, is_called_by


class Departures:
    """Tells of the nodes, when they leave.

    Args:
      observer: Gets the notices.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def save_and_return_nodes(self, original: Any) -> Any:
        """The replacement of `saved_model.save.save_and_return_nodes`."""

        def save_and_return_nodes(
            obj: Any, export_dir: Any, signatures: Any = None, options: Any = None,
            experimental_skip_checkpoint: bool = False,
        ) -> Any:  # fmt: skip
            try:
                found = original(obj, export_dir, signatures, options, experimental_skip_checkpoint)
            except BaseException as error:
                drop_our_frame(error)
                raise
            to = TFLITE if is_called_by("/tensorflow/lite/python/") else str(export_dir)  # its folder is gone then
            self._tell(Notice.SAVED, lambda: held(str(export_dir)), to=to)
            return found

        return save_and_return_nodes

    def builder_save(self, original: Any) -> Any:
        """The replacement of `saved_model.builder_impl._SavedModelBuilder.save`."""

        def save(builder: Any, *args: Any, **options: Any) -> Any:
            try:
                path = original(builder, *args, **options)
            except BaseException as error:
                drop_our_frame(error)
                raise
            text = path.decode() if isinstance(path, bytes) else str(path)
            if text.endswith(".pb"):
                self._tell(Notice.SAVED, lambda: held(os.path.dirname(text)), to=os.path.dirname(text))
            return path

        return save

    def freeze(self, original: Any) -> Any:
        """The replacement of `convert_to_constants.convert_variables_to_constants_from_session_graph`."""

        def convert_variables_to_constants_from_session_graph(*args: Any, **options: Any) -> Any:
            try:
                found = original(*args, **options)
            except BaseException as error:
                drop_our_frame(error)
                raise
            to = TFLITE if is_called_by("/tensorflow/lite/python/") else FROZEN
            self._tell(Notice.SAVED, lambda: held_in(found, "the graph"), to=to)
            return found

        return convert_variables_to_constants_from_session_graph

    def register_dataset(self, original: Any) -> Any:
        """The replacement of `data_service_ops._register_dataset`."""

        def _register_dataset(service: Any, dataset: Any, compression: Any, dataset_id: Any = None) -> Any:
            self._tell(Notice.DISTRIBUTED, lambda: held(dataset), to=str(service))
            try:
                return original(service, dataset, compression, dataset_id)
            except BaseException as error:
                drop_our_frame(error)
                raise

        return _register_dataset

    def _tell(self, notice: Notice, read: Callable[[], Held], to: str) -> None:
        try:
            site = caller()
            noted = set()
            for node in read().nodes:
                body = node.body
                if node.token in noted or body is None or body.internal:
                    continue
                noted.add(node.token)
                self._observer.notice(
                    notice, None if node.generator else node.token, None, name=node.token, body=body.name,
                    file=body.file, line=body.line, kind=node.kind, op=node.op, function=node.graph, to=to, site=site,
                    generator=node.generator, takes=list(node.takes), shared=list(node.shared),
                )  # fmt: skip
        except Exception as error:
            self._observer.trouble("describing what leaves the process", error)
