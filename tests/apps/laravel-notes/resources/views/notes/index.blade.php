@extends('layout')

@section('title', 'Notes')

@section('content')
    @forelse ($notes as $note)
        <article @class(['note', 'first' => $loop->first])>
            <h2><a href="{{ route('note', $note) }}">{{ $note->title }}</a></h2>
            <p>{{ $note->summary ?? 'waits' }}</p>
        </article>
    @empty
        <p>{{ __('messages.none') }}</p>
    @endforelse
    {{ $notes->links('pages') }}
    @include('form', [
        'action' => route('notes'),
        'fields' => ['title' => 'text', 'text' => 'text', 'attachment' => 'file'],
        'button' => 'Store',
    ])
@endsection
