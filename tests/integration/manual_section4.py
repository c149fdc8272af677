"""The script of the manual's section 4, translated by the names table of the specification."""

import asyncio
import os

from zq_notebook import ApprovalOutcome, EventType, Mode, create_default_engine, set_question_handler


async def approve(request):
    print(f"\nApproval required: {request.tool_name}: {request.reason}")
    print(request.arguments)
    return ApprovalOutcome.ONCE


async def answer(question, options, allow_text, multi):
    print(f"Model question: {question}", options)
    return options[0] if options else ""


async def main():
    engine = create_default_engine(
        workspace=os.getcwd(),
        model=os.environ["OPENAI_MODEL"],
        mode=Mode.INTERACTIVE,
    )
    engine.set_approver(approve)
    set_question_handler(answer)

    async for event in engine.run("Read this project and tell me what it does"):
        match event.type:
            case EventType.ASSISTANT_DELTA:
                print(event.data.get("text", ""), end="")
            case EventType.TOOL_STARTED:
                print(f"\n[tool] {event.data['name']}")
            case EventType.TOOL_FINISHED:
                print(f"[tool finished] {event.data['name']}: {event.data['status']}")
            case EventType.ERROR:
                print(f"\n[error] {event.data['error']}")
            case EventType.TURN_END:
                print(f"\n[end] {event.data['status']}")


asyncio.run(main())
