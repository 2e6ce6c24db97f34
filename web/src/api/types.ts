// Short names for the shapes of the API. Its words are in vocabulary.ts.

import type { components } from './schema';

type Schemas = components['schemas'];

export type Account = Schemas['Account'];
export type CapabilityUse = Schemas['CapabilityUse'];
export type Alert = Schemas['Alert'];
export type Artifact = Schemas['Artifact'];
export type Budget = Schemas['Budget'];
export type BudgetPeriod = Schemas['BudgetPeriod'];
export type Burndown = Schemas['Burndown'];
export type Check = Schemas['Check'];
export type Conversation = Schemas['Conversation'];
export type Dag = Schemas['Dag'];
export type DagJob = Schemas['DagJob'];
export type Divergence = Schemas['Divergence'];
export type Explanation = Schemas['Explanation'];
export type Factory = Schemas['Factory'];
export type FactoryVerdict = Schemas['FactoryVerdict'];
export type AuditEntry = Schemas['AuditEntry'];
export type FeedEvent = Schemas['Event'];
export type Flag = Schemas['Flag'];
export type FleetMetrics = Schemas['FleetMetrics'];
export type Job = Schemas['Job'];
export type JobPage = Schemas['JobPage'];
export type LogPiece = Schemas['LogPiece'];
export type Message = Schemas['Message'];
export type PlanAnswer = Schemas['PlanAnswer'];
export type Pool = Schemas['Pool'];
export type PoolMember = Schemas['PoolMember'];
export type PoolSettings = Schemas['PoolSettings'];
export type Question = Schemas['Question'];
export type Remedy = Schemas['Remedy'];
export type Run = Schemas['Run'];
export type Shadow = Schemas['Shadow'];
export type Topic = Schemas['Topic'];
export type TopicJob = Schemas['TopicJob'];
export type TopicList = Schemas['TopicList'];
export type SignInOffer = Schemas['SignInOffer'];
export type WhoAmI = Schemas['WhoAmI'];
