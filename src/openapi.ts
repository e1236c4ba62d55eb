// The entry point `gatehouse-http/openapi`: a description of routes for other tools.
export { openApi, type OpenApiDocument } from './options/openapi/openapi.ts';
export type { OpenApiDetails, OperationDetails } from './options/openapi/details.ts';
export type { OpenApiInfo } from './options/openapi/info.ts';
