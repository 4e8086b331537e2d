"""Forms of the pages: their fields, taken only together with a token that the page had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar
from urllib.parse import parse_qs

from anyio import to_thread
from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from srm_spark.api.audit import Result
from srm_spark.api.control import TheDesk
from srm_spark.api.problems import RequestProblem, told
from srm_spark.api.tokens import FIELD, Tokens

_B = TypeVar("_B", bound=BaseModel)
_MOST_FIELDS = 20


@dataclass(frozen=True)
class Form:
    """What was sent; of a field that comes several times the last one."""

    fields: Mapping[str, str]

    def text(self, name: str) -> str:
        """A field without the blanks around it; empty where it is not there."""
        return self.fields.get(name, "").strip()

    def body(self, model: type[_B], /, **values: object) -> _B:
        """The same as a request to /v3 would have it. Raises RequestProblem with all that is wrong."""
        try:
            return model.model_validate({name: value for name, value in values.items() if value not in ("", None)})
        except ValidationError as error:
            raise RequestProblem(400, "invalid fields", told(error.errors(), skip=0)) from error


async def fields_of(request: Request) -> dict[str, str]:
    """All fields, with the token, which nobody has looked at. Raises RequestProblem where it is no form."""
    try:
        read = parse_qs((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except (ClientDisconnect, ValueError) as error:
        raise RequestProblem(400, "no form", "it is no form of these pages") from error
    return {name: values[-1] for name, values in read.items()}


async def form_of(request: Request, desk: TheDesk) -> Form:
    """The form of a request. Raises RequestProblem, and records it, where its token is not right."""
    tokens: Tokens = request.app.state.tokens
    fields = await fields_of(request)
    if not tokens.is_right(fields.pop(FIELD, ""), desk.caller):
        why = "the form has no token of a page of yours, or an old one: load the page again, and send it once more"
        await to_thread.run_sync(partial(desk.record, f"POST {request.url.path}", Result.REFUSED, why))
        raise RequestProblem(403, "no token", why, "no-token")
    return Form(fields)


TheForm = Annotated[Form, Depends(form_of)]
