@extends('layout')

@section('title', $note->title)

@section('content')
    <h1>{{ $note->title }}</h1>
    <p>{{ $note->text }}</p>
    <p>{{ $note->summary ?? 'waits' }}</p>
    @if ($note->attachment)
        <a href="{{ route('attachment', $note) }}">{{ $note->attachment_name }}</a>
    @endif
    @can('touch', $note)
        <p>It is yours, {{ $note->user->name }}.</p>
    @endcan
@endsection
