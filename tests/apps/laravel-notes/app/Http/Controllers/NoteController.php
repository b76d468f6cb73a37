<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use App\Http\Requests\NoteRequest;
use App\Jobs\Summarise;
use App\Models\Note;
use Illuminate\Contracts\View\View;
use Illuminate\Http\RedirectResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;
use Illuminate\Support\Facades\Storage;
use Symfony\Component\HttpFoundation\StreamedResponse;

final class NoteController extends Controller
{
    private const NOTES_PER_PAGE = 3;

    public function index(Request $request): View
    {
        $notes = $request->user()->notes()->orderBy('number')->paginate(self::NOTES_PER_PAGE)->withQueryString();

        return view('notes.index', ['notes' => $notes]);
    }

    public function store(NoteRequest $request): RedirectResponse
    {
        $file = $request->file('attachment');
        $note = $request->user()->notes()->create([
            'number' => $request->user()->notes()->max('number') + 1,
            'title' => $request->input('title'),
            'text' => $request->input('text'),
            'attachment' => $file?->store('attachments'),
            'attachment_name' => $file?->getClientOriginalName(),
        ]);
        Summarise::dispatch($note);

        return redirect()->route('notes')->with('status', __('messages.stored', ['title' => $note->title]));
    }

    public function show(Note $note): View
    {
        return view('notes.show', ['note' => $note]);
    }

    public function update(NoteRequest $request, Note $note): RedirectResponse
    {
        $note->update(['title' => $request->input('title'), 'text' => $request->input('text')]);

        return redirect()->route('note', $note)->with('status', __('messages.changed'));
    }

    public function destroy(Note $note): RedirectResponse
    {
        $note->attachment === null || Storage::delete($note->attachment);
        $note->delete();

        return redirect()->route('notes')->with('status', __('messages.deleted'));
    }

    public function attachment(Note $note): StreamedResponse
    {
        abort_if($note->attachment === null, 404);

        return Storage::download($note->attachment, $note->attachment_name);
    }
}
